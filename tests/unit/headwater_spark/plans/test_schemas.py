"""Schemas of datasets: several flows and the user's own must agree; what is stored has no marks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
    YearMonthIntervalType,
)

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import QueryFailed, UnsupportedArgument
from headwater_spark.plans.schemas import (
    merged_schema,
    needs_column_mapping,
    stored_schema,
    with_change_columns,
)

ORDERS = Dataset("orders", DatasetName(None, "shop", "orders"), DatasetKind.STREAMING_TABLE)
INT, TEXT = IntegerType(), StringType()


def flow(name: str, /, **columns: object) -> tuple[Flow, StructType]:
    """A flow that gives these columns."""
    fields = [StructField(column, kind) for column, kind in columns.items()]  # type: ignore[arg-type]
    return Flow(name, "orders", lambda: None), StructType(fields)


def test_columns_of_all_flows():
    """A table has the columns of all its flows, in the order in which they first appear; case makes no difference."""
    merged = merged_schema(ORDERS, [flow("a", id=INT, x=TEXT), flow("b", ID=INT, y=INT)], None)
    assert merged.simpleString() == "struct<id:int,x:string,y:int>"


def test_flows_that_disagree():
    """One column of two types is refused with a cast that would help."""
    with pytest.raises(QueryFailed, match="'b' returns string") as caught:
        merged_schema(ORDERS, [flow("a", id=INT), flow("b", id=TEXT)], None)
    assert '.cast("int")' in caught.value.remedy


def test_a_cast_in_the_language_of_the_flow():
    """A statement of SQL is corrected in SQL."""
    other, columns = flow("b", id=TEXT)
    other = replace(other, location=SourceLocation("b.sql", 3))
    with pytest.raises(QueryFailed) as caught:
        merged_schema(ORDERS, [flow("a", id=INT), (other, columns)], None)
    assert caught.value.remedy == "Cast it in the query: CAST(id AS INT) AS id."


@pytest.mark.parametrize(
    "kind",
    [
        DayTimeIntervalType(),
        YearMonthIntervalType(),
        CalendarIntervalType(),
        TimeType(),
        StringType("UTF8_LCASE"),
    ],
)
def test_types_that_delta_has_not(kind: DataType):
    """An interval, a time of day or a text with a collation fails at validate, with a cast, and not first when rows are written; a view may have it."""
    for column in (kind, ArrayType(kind), StructType([StructField("x", kind)]), MapType(TEXT, kind)):
        with pytest.raises(UnsupportedArgument, match="'took'") as caught:
            merged_schema(ORDERS, [flow("a", id=INT, took=column)], None)
        assert "CAST" in caught.value.remedy
    view = replace(ORDERS, kind=DatasetKind.TEMPORARY_VIEW)
    assert merged_schema(view, [flow("a", took=kind)], None).names == ["took"]


def test_a_given_schema():
    """The user's schema decides: columns it lacks and other types are refused, columns that no flow gives stay."""
    given = StructType([StructField("id", INT, nullable=False), StructField("more", TEXT)])
    assert merged_schema(ORDERS, [flow("a", id=INT)], given).simpleString() == "struct<id:int,more:string>"
    with pytest.raises(QueryFailed, match="'x'"):
        merged_schema(ORDERS, [flow("a", id=INT, x=TEXT)], given)
    with pytest.raises(QueryFailed, match="string"):
        merged_schema(ORDERS, [flow("a", id=TEXT)], given)


def test_a_given_schema_of_a_history():
    """It has to name the columns of a history, and is told their type."""
    history, columns = flow("a", id=INT, __START_AT=INT, __END_AT=INT)
    history = replace(history, changes=object())  # type: ignore[arg-type]
    with pytest.raises(QueryFailed, match="'__START_AT'") as caught:
        merged_schema(ORDERS, [(history, columns)], StructType([StructField("id", INT)]))
    assert "names it: __START_AT int." in caught.value.remedy


def test_fields_that_may_be_null():
    """Whether something inside a column may be NULL is no difference: a given schema decides, else it may where one flow says so."""
    whole, loose = (StructType([StructField("a", INT, nullable=nullable)]) for nullable in (False, True))
    given = StructType([StructField("s", whole)])
    assert merged_schema(ORDERS, [flow("a", s=loose)], given) == given
    for kinds in ((whole, loose), (loose, whole)):
        merged = merged_schema(
            ORDERS, [flow(name, s=kind) for name, kind in zip("ab", kinds, strict=True)], None
        )
        assert merged == StructType([StructField("s", loose)])
    assert merged_schema(ORDERS, [flow("a", s=whole)], None) == given


def test_what_is_stored():
    """Columns are stored nullable, without the mark of a watermark and with their other metadata."""
    marks = {"spark.watermarkDelayMs": 1000, "comment": "c"}
    (field,) = stored_schema(StructType([StructField("at", INT, nullable=False, metadata=marks)])).fields
    assert field.nullable
    assert field.metadata == {"comment": "c"}


def test_the_change_feed_has_three_more():
    """A read of changes has Delta's three columns after the table's own."""
    assert with_change_columns(flow("a", id=INT)[1]).names == [
        "id",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]


def test_names_that_delta_stores_with_column_mapping_only():
    """Blanks, commas and brackets in a name, also of a field inside of a struct, an array or a map."""
    odd, plain = (StructType([StructField(name, INT)]) for name in ("a b", "a_b"))
    for wrap in (
        lambda kind: kind,
        ArrayType,
        lambda kind: MapType(TEXT, kind),
        lambda kind: MapType(kind, TEXT),
    ):
        assert needs_column_mapping(StructType([StructField("s", wrap(odd))]))
        assert not needs_column_mapping(StructType([StructField("s", wrap(plain))]))
    assert needs_column_mapping(StructType([StructField("sum(amount)", INT)]))
    assert needs_column_mapping(StructType([StructField("s", StructType([StructField("t", odd)]))]))
