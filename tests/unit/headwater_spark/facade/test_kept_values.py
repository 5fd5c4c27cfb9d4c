"""What a function keeps in arrays and maps comes back as it was, through text and through a pickle."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VariantType,
)

from headwater_spark.facade.kept_values import kept_forms, kept_schema, with_kept_values


class Texts:
    """Spark's state, as far as it is used: a row of columns."""

    def __init__(self) -> None:
        self.row: tuple[Any, ...] | None = None

    @property
    def exists(self) -> bool:
        return self.row is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.row is not None
        return self.row

    def update(self, row: tuple[Any, ...]) -> None:
        assert all(not isinstance(value, list | dict) for value in row)
        self.row = row


def through(kind: Any, value: Any) -> Any:
    """A value after it was kept beside a number."""
    schema = StructType([StructField("n", IntegerType()), StructField("v", kind)])
    forms = kept_forms(schema)
    assert kept_schema(schema, forms).simpleString() == "struct<n:int,v:string>"
    state = Texts()
    with_kept_values(lambda key, frames, kept: kept.update((key, value)), forms, schema.names)(1, [], state)
    assert state.row is not None
    assert state.row[1] is None or isinstance(json.loads(state.row[1]), list)
    return with_kept_values(lambda key, frames, kept: kept.getOption, forms, schema.names)(1, [], state)[1]


TEN = dt.datetime.fromisoformat("2024-01-31 10:00")
WHOLE = StructType(
    [
        StructField("d", DecimalType(38, 2)), StructField("on", DateType()), StructField("at", TimestampNTZType()),
        StructField("b", BinaryType()), StructField("x", DoubleType()), StructField("yes", BooleanType()),
    ]
)  # fmt: skip
_ROW = st.tuples(
    st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.none() | st.dates(), st.none() | st.datetimes(), st.none() | st.binary(), st.none() | st.floats(allow_nan=False),
    st.none() | st.booleans(),
)  # fmt: skip


@given(st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers(value: Any):
    """Lists of whole numbers, with and without NULL."""
    assert through(ArrayType(LongType()), value) == value


@given(st.dictionaries(st.text(), st.lists(_ROW)))
def test_maps_of_rows(value: Any):
    """Maps, lists and structs of every type that is kept, within each other."""
    back = through(MapType(StringType(), ArrayType(WHOLE)), value)
    assert {key: [tuple(row) for row in rows] for key, rows in back.items()} == value
    assert all(
        isinstance(row, Row) and list(row.asDict()) == WHOLE.names for rows in back.values() for row in rows
    )


def test_what_pandas_gives():
    """Arrays and scalars of NumPy, points in time of pandas, and structs as dicts are taken."""
    import pandas as pd  # takes half a second, which no other test needs

    assert through(ArrayType(IntegerType()), np.array([1, 2])) == [1, 2]
    assert through(ArrayType(TimestampNTZType()), [pd.Timestamp(TEN)]) == [TEN]
    assert through(ArrayType(DateType()), [TEN]) == [dt.date(2024, 1, 31)]
    one = StructType([StructField("a", ArrayType(DoubleType()))])
    assert through(one, {"a": [1, np.float64(2.5)]}) == Row(a=[1.0, 2.5])
    assert through(MapType(IntegerType(), DecimalType(9, 1)), {1: decimal.Decimal("0.1")}) == {
        1: decimal.Decimal("0.1")
    }


@pytest.mark.parametrize("value", [["a"], [1.5], [True], 3, [[1]]])
def test_a_value_of_another_type(value: Any):
    """It is an error in the function's line with the column, not a value that can't be read back."""
    with pytest.raises(TypeError, match="The state's column 'v' can't keep its value"):
        through(ArrayType(IntegerType()), value)


def test_other_columns_stay():
    """Columns of plain types are Spark's, and so are those whose elements no text stands for."""
    schema = StructType([StructField("a", StringType()), StructField("b", ArrayType(VariantType()))])
    assert kept_forms(schema) == {}
    assert kept_schema(schema, {}) == schema


def test_workers_need_nothing_of_this_package():
    """The wrapper is pickled by value."""
    forms = kept_forms(StructType([StructField("v", ArrayType(IntegerType()))]))
    pickled = cloudpickle.dumps(with_kept_values(len, forms, ["v"]))
    code = (
        "import sys, pickle\n"
        "class No:\n    def find_spec(self, name, path=None, target=None):\n"
        "        assert not name.startswith('headwater'), name\n"
        "sys.meta_path.insert(0, No())\n"
        "pickle.loads(sys.stdin.buffer.read())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
