"""Fields that a schema lacks are named at any depth, and a value parts into what the schema takes and what is left over."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from headwater_spark.sources.cloud_files.merging import evolved
from headwater_spark.sources.cloud_files.nested_fields import narrowed, surplus, unknown_fields


def ddl(text: str) -> StructType:
    """The columns that a text of DDL names."""
    data_type = DataType.fromDDL(text)
    assert isinstance(data_type, StructType)
    return data_type


@pytest.mark.parametrize(
    ("known", "seen", "unknown"),
    [
        ("id INT", "id INT, z INT", ["z"]),
        ("s STRUCT<a: INT>", "s STRUCT<a: INT, b: INT>, z INT", ["s.b", "z"]),
        ("s STRUCT<t: STRUCT<a: INT>>", "s STRUCT<t: STRUCT<a: INT, b: INT>>", ["s.t.b"]),
        ("l ARRAY<STRUCT<a: INT>>", "l ARRAY<STRUCT<a: INT, b: INT>>", ["l.element.b"]),
        ("l ARRAY<ARRAY<STRUCT<a: INT>>>", "l ARRAY<ARRAY<STRUCT<b: INT>>>", ["l.element.element.b"]),
        ("m MAP<STRING, STRUCT<a: INT>>", "m MAP<STRING, STRUCT<a: INT, b: INT>>", ["m.value.b"]),
        ("s STRUCT<a: INT>", "S STRUCT<A: INT>", []),
        ("s STRUCT<a: INT>, x INT", "s STRING", []),
    ],
)
def test_names(spark: SparkSession, known: str, seen: str, unknown: list[str]):
    """Each with its path; the schema that took them in lacks none of them."""
    assert unknown_fields(ddl(known), ddl(seen)) == unknown
    assert unknown_fields(evolved(ddl(known), ddl(seen)), ddl(seen)) == []


NAMES = st.sampled_from(["a", "b", "c"])


def structs(kinds: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    """Structs of up to three fields, each name once."""
    return st.dictionaries(NAMES, kinds, max_size=3).map(
        lambda fields: StructType([StructField(name, kind) for name, kind in fields.items()])
    )


KINDS = st.recursive(
    st.just(IntegerType()),
    lambda inner: st.one_of(
        structs(inner), inner.map(ArrayType), inner.map(lambda kind: MapType(StringType(), kind))
    ),
    max_leaves=6,
)


@given(known=structs(KINDS), seen=structs(KINDS))
def test_what_is_named_is_what_evolves(known: StructType, seen: StructType):
    """Any two schemas: evolving ends the difference, loses nothing, and where none is named it adds nothing."""
    whole = evolved(known, seen)
    assert unknown_fields(whole, seen) == []
    assert unknown_fields(whole, known) == []
    assert (unknown_fields(known, seen) == []) == (whole == known)


WHOLE = "s STRUCT<a: INT, b: INT, t: STRUCT<x: INT, y: INT>>, l ARRAY<STRUCT<a: INT, b: INT>>, m MAP<STRING, STRUCT<a: INT, b: INT>>"
WANTED = "s STRUCT<t: STRUCT<x: INT>, a: INT>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<a: INT>>"
CASES = {
    "s": [
        ({"a": 1, "b": 2, "t": {"x": 3, "y": 4}}, {"t": {"x": 3}, "a": 1}, {"b": 2, "t": {"y": 4}}),
        ({"a": 1, "t": {"x": 3}}, {"t": {"x": 3}, "a": 1}, None),
        ({"t": {"y": 4}}, {"t": {}}, {"t": {"y": 4}}),
        (None, None, None),
    ],
    "l": [
        ([{"a": 1}, None, {"a": 2, "b": 3}], [{"a": 1}, None, {"a": 2}], [None, None, {"b": 3}]),
        ([{"a": 1}], [{"a": 1}], None),
        ([], [], None),
        (None, None, None),
    ],
    "m": [
        ({"k": {"a": 1, "b": 2}, "j": {"a": 3}}, {"k": {"a": 1}, "j": {"a": 3}}, {"k": {"b": 2}}),
        ({"k": {"a": 1}}, {"k": {"a": 1}}, None),
        (None, None, None),
    ],
}  # fmt: skip


def test_values(spark: SparkSession):
    """What is kept and what is left over make up the value; nothing left over is NULL, and a NULL stays one."""
    whole, wanted = ddl(WHOLE), ddl(WANTED)
    for name, cases in CASES.items():
        kinds = whole[name].dataType, wanted[name].dataType
        text = [(json.dumps({name: value}),) for value, _, _ in cases]
        frame = spark.createDataFrame(text, "j STRING").select(
            F.from_json("j", StructType([whole[name]]))[name].alias("v")
        )
        rows = frame.select(
            narrowed(F.col("v"), *kinds).alias("kept"), surplus(F.col("v"), *kinds).alias("left")
        )
        assert rows.schema["kept"].dataType.simpleString() == wanted[name].dataType.simpleString()
        values = [json.loads(row[0]) for row in rows.select(F.to_json(F.struct("kept", "left"))).collect()]
        assert [(row.get("kept"), row.get("left")) for row in values] == [
            (kept, left) for _, kept, left in cases
        ]
