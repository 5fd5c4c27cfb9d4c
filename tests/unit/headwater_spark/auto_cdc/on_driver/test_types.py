"""Which types come to the driver, and which of them Arrow may compare and order: whatever is not listed is Spark's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from headwater_spark.auto_cdc.change_columns import DELETE, SEQUENCE, ChangeColumns
from headwater_spark.auto_cdc.on_driver.events import arrow_can_reduce, facts_of, is_comparable, is_ordered
from headwater_spark.auto_cdc.on_driver.rows import is_atomic, is_plain, is_text

COLLATED = T.StringType("UNICODE_CI")
# Type: whether it comes to the driver, whether Arrow's equality is Spark's, and whether its order is.
ATOMIC: list[tuple[T.DataType, bool, bool, bool]] = [
    (T.ByteType(), True, True, True), (T.ShortType(), True, True, True), (T.IntegerType(), True, True, True),
    (T.LongType(), True, True, True), (T.DateType(), True, True, True), (T.TimestampType(), True, True, True),
    (T.StringType(), True, True, False), (T.FloatType(), True, False, False), (T.DoubleType(), True, False, False),
    (T.DecimalType(38, 2), True, False, False), (T.BooleanType(), True, False, False), (T.BinaryType(), True, False, False),
    (COLLATED, False, False, False), (T.TimestampNTZType(), False, False, False), (T.VariantType(), False, False, False),
    (T.NullType(), False, False, False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "plain", "comparable", "ordered"), ATOMIC, ids=str)
def test_types_of_one_value(kind: T.DataType, plain: bool, comparable: bool, ordered: bool):
    """A type is plain where Spark, Arrow and delta-rs agree on its values; fewer are compared, and fewer still ordered."""
    assert (is_atomic(kind), is_comparable(kind), is_ordered(kind)) == (plain, comparable, ordered)
    assert is_text(kind) == (kind == T.StringType())
    for nested in (
        kind, T.ArrayType(kind), T.MapType(T.StringType(), kind), T.MapType(kind, T.StringType()),
        T.StructType([T.StructField("a", kind)]), T.ArrayType(T.StructType([T.StructField("a", kind)])),
    ):  # fmt: skip
        assert is_plain(nested) == plain
        if nested is not kind:
            assert not is_comparable(nested)
            assert not is_ordered(nested)


def test_fields_that_must_have_a_value():
    """Below a NULL, Arrow has NULLs in all fields: a NOT NULL field passes only where nothing above it may be NULL."""
    strict = T.StructType(
        [T.StructField("a", T.IntegerType(), nullable=False), T.StructField("b", T.IntegerType())]
    )
    assert is_plain(strict)
    assert not is_plain(strict, nullable=True)
    for nullable in (True, False):
        assert is_plain(T.StructType([T.StructField("s", strict, nullable=nullable)])) != nullable
        assert is_plain(T.ArrayType(strict, containsNull=nullable)) != nullable
        assert is_plain(T.MapType(T.StringType(), strict, valueContainsNull=nullable)) != nullable


def columns_of(key: T.DataType, sequence: T.DataType, truncate: Any = None) -> ChangeColumns:
    nothing: Any = None
    fields = (T.StructField("key", key),)
    return ChangeColumns(("key",), fields, nothing, sequence, None, nothing, truncate, False, (), ())


@pytest.mark.parametrize(("kind", "plain", "comparable", "ordered"), ATOMIC, ids=str)
def test_what_arrow_reduces(kind: T.DataType, plain: bool, comparable: bool, ordered: bool):
    """Arrow reduces events whose keys it compares and whose sequence it orders as Spark does, and none with a truncate."""
    assert arrow_can_reduce(columns_of(kind, T.IntegerType())) == comparable
    assert arrow_can_reduce(columns_of(T.StringType(), kind)) == ordered
    assert not arrow_can_reduce(columns_of(kind, kind, truncate="an expression"))


@pytest.mark.parametrize(
    ("kind", "arrow", "values", "wanted"),
    [
        (T.ByteType(), pa.int8(), [127, -128], ("-128", "127")),
        (T.LongType(), pa.int64(), [2**63 - 1, -(2**63)], (str(-(2**63)), str(2**63 - 1))),
        (T.DateType(), pa.date32(), [date(9999, 12, 30), date(1, 1, 2)], ("0001-01-02", "9999-12-30")),
        (T.TimestampType(), pa.timestamp("us", "UTC"), [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(1, 1, 2, tzinfo=UTC)], (-62135510400000000, -1)),
        (T.StringType(), pa.string(), ["é", ""], ("", "é")),
        (T.DoubleType(), pa.float64(), [0.5, 0.25], None),
    ],
)  # fmt: skip
def test_facts_are_literals(kind: T.DataType, arrow: Any, values: list[Any], wanted: tuple[Any, Any] | None):
    """The range of a key is written as Spark's aggregates write it: times in microseconds, all else as text; else there is none."""
    events = pa.table(
        {"key": pa.array(values, arrow), SEQUENCE: pa.array([2, 1], pa.int32()), DELETE: [True, False]}
    )
    facts = facts_of(events, 2, 0, columns_of(kind, T.IntegerType()))
    assert (facts.get("low0"), facts.get("high0")) == (wanted or (None, None))
    assert ("low0" in facts) == (wanted is not None)
    assert (facts["first_sequence"], facts["deletes"], facts["remaining"]) == ("1", 1, 2)


@pytest.mark.parametrize("keys", [("key", "other"), ("other", "key")])
def test_each_key_has_to_be_compared(keys: tuple[str, ...]):
    """One that Arrow does not compare as Spark does is enough."""
    nothing: Any = None
    fields = (T.StructField("key", T.StringType()), T.StructField("other", T.DoubleType()))
    columns = ChangeColumns(keys, fields, nothing, T.IntegerType(), None, nothing, None, False, (), ())
    assert not arrow_can_reduce(columns)
    assert arrow_can_reduce(replace(columns, keys=("key",)))
