"""Lakeflow's times become the cron text of Airflow, or none where that can't say the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from headwater.definitions.cron_text import every, from_quartz, from_quartz_text

UNITS = {
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}


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


def test_a_text_with_its_zone():
    """Six or seven fields in UTC, under any of its names."""
    assert from_quartz_text("0 15 3 ? * SUN", "Etc/UTC") == "15 3 * * SUN"
    assert from_quartz_text("0 15 3 ? * SUN", "Europe/Paris") is None
    assert from_quartz_text("15 3 * * *", "UTC") is None
