"""The rows of a range, as a condition over the table's columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.types import (
    DateType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from tests.unit.headwater_spark.update_parts import dataset

from headwater.backfills.backfill_range import BackfillRange, RangeKind
from headwater.backfills.conditions import InvalidRange
from headwater_spark.backfills.event_slice import slice_condition
from headwater_spark.plans.schema_text import GENERATED

COLUMNS = StructType(
    [
        StructField("At", TimestampType()),
        StructField("wall", TimestampNTZType()),
        StructField("day", DateType()),
        StructField("o`dd", TimestampType()),
        StructField("id", IntegerType()),
        StructField("text", StringType()),
    ]
)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def condition(column: str, start: datetime = FIRST, end: datetime = FIRST + timedelta(days=2)) -> str:
    """The condition of a range by this column."""
    return slice_condition(BackfillRange(RangeKind.EVENT_TIME, start, end, column), COLUMNS, dataset())


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("AT", "`At` >= TIMESTAMP '2026-01-01 00:00:00.000000+00:00' AND `At` < TIMESTAMP '2026-01-03 00:00:00.000000+00:00'"),
        ("wall", "`wall` >= TIMESTAMP_NTZ '2026-01-01 00:00:00.000000' AND `wall` < TIMESTAMP_NTZ '2026-01-03 00:00:00.000000'"),
        ("day", "`day` >= DATE '2026-01-01' AND `day` < DATE '2026-01-03'"),
        ("o`dd", "`o``dd` >= TIMESTAMP '2026-01-01 00:00:00.000000+00:00' AND `o``dd` < TIMESTAMP '2026-01-03 00:00:00.000000+00:00'"),
    ],
)  # fmt: skip
def test_the_first_end_is_in_the_range_and_the_second_is_not(column: str, text: str):
    """Times are half open, to the microsecond, in UTC; a column without a zone has the clock's reading of UTC."""
    assert condition(column) == text


def test_a_generated_column_stands_for_its_expression_in_a_query():
    """Its table has it, and the rows of the query that fill it do not."""
    columns = StructType([StructField("day", DateType(), metadata={GENERATED: "CAST(at AS DATE)"})])
    chosen = BackfillRange(RangeKind.EVENT_TIME, FIRST, FIRST + timedelta(days=2), "day")
    of_table, of_query = (
        slice_condition(chosen, columns, dataset(), of_query=of_query) for of_query in (False, True)
    )
    assert of_table == "`day` >= DATE '2026-01-01' AND `day` < DATE '2026-01-03'"
    assert of_query == "(CAST(at AS DATE)) >= DATE '2026-01-01' AND (CAST(at AS DATE)) < DATE '2026-01-03'"


def test_parts_of_a_second():
    """They are kept."""
    assert "00:00:00.000001+" in condition("at", FIRST + timedelta(microseconds=1))


@pytest.mark.parametrize("column", ["id", "text", "nope", "day_", ""])
def test_what_is_no_time(column: str):
    """A column that does not exist, or has no times, is refused; the error lists those that have."""
    with pytest.raises(InvalidRange) as caught:
        condition(column)
    assert "At, wall, day, o`dd" in caught.value.remedy


@pytest.mark.parametrize("hours", [(1, 0), (0, 1)])
def test_a_part_of_a_day(hours: tuple[int, int]):
    """A column of dates has whole days only: neither end may be within one."""
    with pytest.raises(InvalidRange, match="within a day"):
        condition("day", FIRST + timedelta(hours=hours[0]), FIRST + timedelta(days=1, hours=hours[1]))
