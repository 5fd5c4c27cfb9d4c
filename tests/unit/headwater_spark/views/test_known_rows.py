"""Changed rows on the driver: what is left of them in some of their columns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headwater_spark.views.known_rows import SIGN, KnownRows

SCHEMA = StructType(
    [StructField("n", LongType()), StructField("s", StringType()), StructField("x", DoubleType())]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "a", "A"]),
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
        st.sampled_from([-2, -1, 1, 2]),
    )
)


def known(rows: list[tuple[Any, ...]]) -> KnownRows:
    """The rows, each with its sign at the end."""
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [(), (), (), ()]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return KnownRows(SCHEMA, pa.table(arrays, [*SCHEMA.names, SIGN]))


def shown(rows: KnownRows) -> Counter[str]:
    """Each row by its text, as often as its sign says."""
    counted: Counter[str] = Counter()
    for row in rows.table.to_pylist():
        sign = row.pop(SIGN)
        counted[repr(tuple(row.values()))] += sign
    return counted


@given(ROWS, st.sampled_from([["n"], ["s", "n"], ["x"], ["x", "s"], ["n", "s", "x"]]))
def test_what_is_left_in_some_columns(rows: list[tuple[Any, ...]], columns: list[str]) -> None:
    """The net of all rows that are equal in these columns, once each; zero and minus zero are two values."""
    places = [SCHEMA.names.index(name) for name in columns]
    wanted: Counter[str] = Counter()
    for row in rows:
        wanted[repr(tuple(row[place] for place in places))] += row[-1]
    left = known(rows).of(columns)
    assert left.schema.names == columns
    assert shown(left) == Counter({text: count for text, count in wanted.items() if count})
    assert len(left) == len(shown(left))


@given(ROWS)
def test_rows_that_went(rows: list[tuple[Any, ...]]) -> None:
    """Those with a negative sign, in all columns."""
    assert shown(known(rows).gone) == Counter(
        {text: count for text, count in shown(known([row for row in rows if row[-1] < 0])).items() if count}
    )


def test_days_and_times_beyond_the_years_of_python() -> None:
    """A date in the year 10000, or a time before the year 1, is compared as any other."""
    far = StructType([StructField("d", DateType()), StructField("t", TimestampType())])
    days, times = (
        pa.array([3_000_000, 3_000_000, 1], pa.int32()),
        pa.array([-(10**17), -(10**17), 5], pa.int64()),
    )
    table = pa.table(
        [days.cast(pa.date32()), times.cast(pa.timestamp("us", "UTC")), pa.array([1, -1, 1], pa.int64())],
        [*far.names, SIGN],
    )
    left = KnownRows(far, table).of(["t", "d"])
    assert left.table["d"].cast(pa.int32()).to_pylist() == [1]
