"""SCHEDULE becomes the cron text of Airflow, or is refused where that can't say the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater.sql_sources.test_grammar import dataset
from tests.unit.headwater.sql_sources.test_refusals import refused

from headwater.sql_sources.conditions import SqlNotUnderstood
from headwater.sql_sources.schedule import every, from_quartz

UNITS = {
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}


@pytest.mark.parametrize(
    ("clause", "cron"),
    [
        ("SCHEDULE EVERY 1 HOUR", "0 * * * *"),
        ("SCHEDULE REFRESH EVERY 6 HOURS", "0 */6 * * *"),
        ("schedule every 1 day", "0 0 * * *"),
        ("SCHEDULE EVERY 1 WEEK", "0 0 * * 0"),
        ("SCHEDULE CRON '0 15 3 * * ?'", "15 3 * * *"),
        ("SCHEDULE REFRESH CRON '0 0/30 8-17 ? * MON-FRI *' AT TIME ZONE 'UTC'", "0/30 8-17 * * MON-FRI"),
        ("SCHEDULE CRON '0 0 12 ? * 2,4-6'", "0 12 * * MON,WED-FRI"),
    ],
)
def test_forms(clause: str, cron: str):
    """Every form, among other clauses; Quartz counts days from Sunday, which is 1."""
    found = dataset(
        f"CREATE OR REFRESH MATERIALIZED VIEW v COMMENT 'c' {clause} CLUSTER BY (a) AS SELECT 1 AS a"
    )
    assert found.schedule == cron
    assert "schedule" not in found.stored
    assert dataset(f"CREATE STREAMING TABLE t {clause}").schedule == cron


@given(st.integers(1, 60), st.sampled_from(sorted(UNITS)))
def test_an_interval_has_no_gaps(number: int, unit: str):
    """Where an interval becomes a cron text, its runs are exactly so far apart, over months' and years' ends too."""
    cron = every(str(number), unit)
    if cron is None:
        return
    times = croniter(cron, datetime(2027, 12, 20, tzinfo=UTC))
    moments = [times.get_next(datetime) for _ in range(400)]
    assert {after - before for before, after in pairwise(moments)} == {number * UNITS[unit]}


def test_an_interval_is_shorter_than_its_field():
    """Sixty minutes would be a step over all of a cron's minutes, which not every reader of cron takes; an hour is written so."""
    assert every("30", "MINUTE") == "*/30 * * * *"
    assert every("60", "MINUTE") is None


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "7", "often"])
def test_intervals_that_cron_lacks(number: str):
    """They have no cron text."""
    assert every(number, "HOUR") is None


@pytest.mark.parametrize(
    "fields",
    [
        "5 0 * * * ?",
        "0 0 0 L * ?",
        "0 0 0 15W * ?",
        "0 0 0 ? * 6#3",
        "0 0 0 ? * 6L",
        "0 0 0 * * ? 2030",
        "0 0 0 1 * MON",
        "0 0 0 ; * ?",
    ],
)
def test_fields_that_cron_lacks(fields: str):
    """Seconds, years, the last day, the nearest weekday, the third Friday, and both days at once."""
    assert from_quartz(fields.split()) is None


def test_a_text_that_is_no_cron():
    """It is refused at its place, with the six fields."""
    error = refused("CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 * * *' AS SELECT 1")
    assert isinstance(error, SqlNotUnderstood)
    assert "has 4 fields" in error.what
    assert isinstance(
        refused("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 1 FORTNIGHT AS SELECT 1"), SqlNotUnderstood
    )
    assert isinstance(refused("CREATE MATERIALIZED VIEW v SCHEDULE DAILY AS SELECT 1"), SqlNotUnderstood)
