"""SCHEDULE becomes the cron text of Airflow, or is refused where that can't say the same."""

from __future__ import annotations

import pytest
from tests.unit.headwater.sql_sources.test_grammar import dataset
from tests.unit.headwater.sql_sources.test_refusals import refused

from headwater.sql_sources.conditions import SqlNotUnderstood


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


def test_a_text_that_is_no_cron():
    """It is refused at its place, with the six fields."""
    error = refused("CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 * * *' AS SELECT 1")
    assert isinstance(error, SqlNotUnderstood)
    assert "has 4 fields" in error.what
    assert isinstance(
        refused("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 1 FORTNIGHT AS SELECT 1"), SqlNotUnderstood
    )
    assert isinstance(refused("CREATE MATERIALIZED VIEW v SCHEDULE DAILY AS SELECT 1"), SqlNotUnderstood)
