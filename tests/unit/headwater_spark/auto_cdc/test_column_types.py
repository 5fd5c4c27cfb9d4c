"""What a column of a change flow may become in its target: decided by types alone, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import types as T

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.column_types import FittedColumns, fit_columns, fitted_type, holds


def schema(text: str) -> T.StructType:
    """Columns as DDL, without a JVM."""
    return T.StructType(
        [T.StructField(name, TYPES[kind]) for name, kind in (c.split() for c in text.split(", "))]
    )


TYPES: dict[str, T.DataType] = {
    "byte": T.ByteType(), "short": T.ShortType(), "int": T.IntegerType(), "long": T.LongType(), "float": T.FloatType(),
    "double": T.DoubleType(), "date": T.DateType(), "ntz": T.TimestampNTZType(), "ltz": T.TimestampType(), "string": T.StringType(),
    "bool": T.BooleanType(), "dec6.2": T.DecimalType(6, 2), "dec12.4": T.DecimalType(12, 4), "dec10": T.DecimalType(10, 0),
    "dec5.4": T.DecimalType(5, 4), "dec8.4": T.DecimalType(8, 4), "void": T.NullType(),
}  # fmt: skip


def fit(
    now: T.StructType, table: T.StructType, *, widens: Callable[[], bool] = lambda: True, **options: Any
) -> FittedColumns:
    """Fit columns of a type 1 flow whose key is ``key``."""
    nothing: Any = None
    columns = ChangeColumns(
        ("key",), tuple(now.fields), nothing, T.IntegerType(), None, nothing, None, False, (), (), **options
    )
    return fit_columns(columns, table, "main.py:3", widens=widens)


@pytest.mark.parametrize(
    ("known", "now", "wanted"),
    [
        ("byte", "short", "short"), ("short", "int", "int"), ("int", "long", "long"), ("byte", "long", "long"),
        ("float", "double", "double"), ("date", "ntz", "ntz"), ("dec6.2", "dec12.4", "dec12.4"), ("int", "double", "double"),
        ("int", "dec10", "dec10"), ("dec6.2", "dec5.4", "dec8.4"),
        # What the table holds already stays as it is there.
        ("long", "int", "long"), ("double", "float", "double"), ("dec12.4", "dec6.2", "dec12.4"), ("ntz", "date", "ntz"),
        ("long", "void", "long"), ("string", "string", "string"),
        # Not every value would be kept.
        ("int", "string", None), ("string", "int", None), ("long", "double", None), ("date", "ltz", None), ("ntz", "ltz", None),
        ("bool", "int", None), ("double", "dec12.4", None), ("long", "float", None), ("string", "bool", None),
    ],
)  # fmt: skip
def test_types_that_hold_both(known: str, now: str, wanted: str | None):
    """A type widens where all values are kept and Delta can change the column; a narrower one is cast; others are refused."""
    both = fitted_type(TYPES[known], TYPES[now])
    assert both == (None if wanted is None else TYPES[wanted])
    table, given = schema(f"key int, v {known}"), schema(f"key int, v {now}")
    if wanted is None:
        with pytest.raises(ColumnTypeChanged, match=r"'v' is .* in the table, and now comes as"):
            fit(given, table)
        return
    fitted = fit(given, table)
    assert fitted.columns.type_of("v") == TYPES[wanted]
    assert fitted.widened == (() if known == wanted else ((("v",), TYPES[wanted]),))


def test_a_table_that_does_not_widen():
    """Without the table's property a wider type is refused, and the message says which property helps."""
    with pytest.raises(ColumnTypeChanged) as caught:
        fit(schema("key int, v long"), schema("key int, v int"), widens=lambda: False)
    assert "delta.enableTypeWidening" in caught.value.remedy
    assert caught.value.where == "main.py:3"


def test_nothing_is_looked_up_where_nothing_changed():
    """A table's properties are read only where a column has to be widened, and fields that fit are left as they are."""
    table = schema("key int, v int")

    def never() -> bool:
        raise AssertionError

    fitted = fit(schema("key int, v int, more string"), table, widens=never)
    assert [field.name for field in fitted.columns.fields] == ["key", "v", "more"]
    assert fitted.widened == ()


@pytest.mark.parametrize("now", ["long", "byte", "string"])
def test_keys_keep_their_type(now: str):
    """A key of another type is refused, a wider one too: keys of both types would be two."""
    with pytest.raises(ColumnTypeChanged):
        fit(schema(f"key {now}, v int"), schema("key int, v int"))


def test_fields_of_nested_types():
    """A field that a struct loses stays, to be NULL; one that it gains comes last; inner types widen under their path."""
    inner = schema("x int, lost string")
    known = T.StructType(
        [
            T.StructField("n", T.ShortType()), T.StructField("gone", T.StringType()),
            T.StructField("list", T.ArrayType(inner)), T.StructField("map", T.MapType(T.StringType(), inner)),
        ]
    )  # fmt: skip
    other = schema("X long, more date")
    now = T.StructType(
        [
            T.StructField("list", T.ArrayType(other)), T.StructField("map", T.MapType(T.StringType(), other)),
            T.StructField("n", T.IntegerType()), T.StructField("new", T.BooleanType()),
        ]
    )  # fmt: skip
    keys = schema("key int").fields
    fitted = fit(
        T.StructType([*keys, T.StructField("s", now)]), T.StructType([*keys, T.StructField("s", known)])
    )
    whole = "struct<x:bigint,lost:string,more:date>"
    assert fitted.columns.type_of("s").simpleString() == (
        f"struct<n:int,gone:string,list:array<{whole}>,map:map<string,{whole}>,new:boolean>"
    )
    assert [(".".join(path), kind.simpleString()) for path, kind in fitted.widened] == [
        ("s.n", "int"), ("s.list.element.x", "bigint"), ("s.map.value.x", "bigint"),
    ]  # fmt: skip
    numbered = T.MapType(T.IntegerType(), T.StringType())
    assert fitted_type(numbered, T.MapType(T.LongType(), T.StringType())) is None


@pytest.mark.parametrize(
    ("current", "new", "whole"),
    [
        ("long", "int", True),
        ("int", "long", False),
        ("int", "double", False),
        ("double", "float", True),
        ("dec12.4", "int", False),
        ("dec10", "short", True),
        ("dec6.2", "dec5.4", False),
        ("dec12.4", "dec6.2", True),
        ("date", "ltz", False),
        ("int", "void", True),
        ("bool", "bool", True),
    ],
)
@pytest.mark.parametrize("depth", ["alone", "array", "map", "struct"])
def test_a_column_holds_all_values(current: str, new: str, whole: bool, depth: str):
    """Narrower values fit as they are; nothing that would have to be cut does, however deep it lies."""

    def placed(kind: T.DataType, *more: T.StructField) -> T.DataType:
        if depth == "alone":
            return kind
        if depth == "map":
            return T.MapType(T.StringType(), kind)
        return T.ArrayType(kind) if depth == "array" else T.StructType([T.StructField("a", kind), *more])

    other = T.StructField("b", T.StringType())
    assert holds(placed(TYPES[current]), placed(TYPES[new], other)) == whole
    assert holds(placed(TYPES[current], other), placed(TYPES[new])) == whole


@pytest.mark.parametrize(
    "other",
    [T.StringType(), T.StructType([T.StructField("a", T.IntegerType())]), T.ArrayType(T.IntegerType())],
)
def test_columns_of_another_shape(other: T.DataType):
    """A map, an array or a struct holds nothing of another kind, and nothing else holds them; NULL fits all."""
    nested = [
        T.MapType(T.StringType(), T.IntegerType()),
        T.ArrayType(T.LongType()),
        T.StructType([T.StructField("b", T.LongType())]),
    ]
    for one in nested:
        if type(one) is not type(other):
            assert fitted_type(one, other) is None
            assert fitted_type(other, one) is None
            assert holds(one, T.NullType())
