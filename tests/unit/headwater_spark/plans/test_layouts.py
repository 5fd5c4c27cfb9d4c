"""Layouts that Delta would refuse at the first write are refused by validate, with a way out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedArgument
from headwater_spark.plans.layouts import check_layout

INT, TEXT = IntegerType(), StringType()
INNER = StructType([StructField("x", INT)])
ORDERS = Dataset(
    "orders", DatasetName(None, "shop", "orders"), DatasetKind.STREAMING_TABLE, SourceLocation("a.py", 3)
)


def check(columns: dict[str, DataType], **layout: tuple[str, ...]) -> None:
    """Check a table of these columns, laid out so."""
    check_layout(
        replace(ORDERS, **layout), {name.lower(): StructField(name, kind) for name, kind in columns.items()}
    )


def refusal(columns: dict[str, DataType], **layout: tuple[str, ...]) -> UnsupportedArgument:
    """The error of a layout; it names the place and what to do."""
    with pytest.raises(UnsupportedArgument) as caught:
        check(columns, **layout)
    assert caught.value.where == "a.py:3"
    assert caught.value.remedy
    return caught.value


def test_partitions_leave_a_column():
    """A table can't be partitioned by all of its columns, whatever the case of their letters."""
    assert "all of its columns" in refusal({"id": INT, "x": TEXT}, partition_columns=("ID", "x")).what
    check({"id": INT, "x": TEXT}, partition_columns=("x",))


def test_partitions_are_no_bytes():
    """Delta keeps partitions as text, where X'FF' comes back as other bytes: a merge by such a key would double its row."""
    error = refusal({"id": INT, "Raw": BinaryType()}, partition_columns=("raw",))
    assert "partitioned by 'raw', which is binary" in error.what
    assert "F.hex('raw')" in error.remedy
    assert "cluster_by" not in error.remedy  # which takes no bytes either


@pytest.mark.parametrize("kind", [ArrayType(INT), MapType(TEXT, INT), INNER, VariantType()], ids=str)
def test_partitions_are_plain_values(kind: DataType):
    """A column of several values in a row is no partition."""
    assert f"which is {kind.simpleString()}" in refusal({"id": INT, "m": kind}, partition_columns=("m",)).what


def test_a_layout_by_columns_that_are_not_there():
    """A misspelt column to partition or cluster by is refused, with the name that was meant."""
    columns: dict[str, DataType] = {"id": INT, "Day": TEXT, "s": INNER}
    for argument, name in (
        ("partition_columns", "dya"),
        ("cluster_columns", "dya"),
        ("cluster_columns", "t.x"),
    ):
        error = refusal(columns, **{argument: ("id", name)})
        assert f"names '{name}', and its columns are: id, Day, s" in error.what
        assert ("Did you mean 'day'?" in error.remedy) == (name == "dya")
    for argument, name in (
        ("partition_columns", "DAY"),
        ("cluster_columns", "Day"),
        ("cluster_columns", "S.x"),
    ):
        check(columns, **{argument: (name,)})


@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        ("s.nope", "names 's.nope', and the fields of 's' are: x, Deep", "Name a column of the table"),
        ("S.dep.y", "the fields of 's' are: x, Deep", "Did you mean 's.deep'?"),
        ("s.deep.z", "the fields of 's.Deep' are: y", "Name a column"),
        ("id.x", "'id' is no struct", "Name a column"),
        ("many.x", "'many' is no struct", "Name a column"),
    ],
)
def test_a_field_that_its_struct_does_not_have(name: str, what: str, remedy: str):
    """A table can't be clustered by what is not inside of a column: refused with the fields that are."""
    struct = StructType([StructField("x", INT), StructField("Deep", StructType([StructField("y", TEXT)]))])
    columns: dict[str, DataType] = {"id": INT, "s": struct, "many": ArrayType(struct)}
    error = refusal(columns, cluster_columns=("id", name))
    assert what in error.what
    assert remedy in error.remedy
    check(columns, cluster_columns=("id", "s.X", "S.deep.y"))
    check({"s.nope": INT, **columns}, cluster_columns=("s.nope",))


def test_fields_of_structs_that_have_no_ranges():
    """What holds of columns holds of the fields inside: Delta keeps no range of a structure's or an array's values."""
    struct = StructType([StructField("inner", INNER), StructField("many", ArrayType(INT))])
    for name in ("s.inner", "s.many"):
        assert f"by '{name}', which is" in refusal({"id": INT, "s": struct}, cluster_columns=(name,)).what


def test_partitions_are_whole_columns():
    """Delta has no partitions by a field of a struct: refused with the way to have one."""
    error = refusal({"id": INT, "s": INNER}, partition_columns=("s.x",))
    assert "names 's.x', and 's' is a struct" in error.what
    assert "a column of its own" in error.remedy


@pytest.mark.parametrize("argument", ["partition_columns", "cluster_columns"])
def test_a_column_twice(argument: str):
    """One column is named once, whatever the case of its letters."""
    assert "names the column 'ID' twice" in refusal({"id": INT, "x": TEXT}, **{argument: ("id", "ID")}).what


def test_clusters_are_few():
    """Delta clusters a table by four columns at most."""
    columns: dict[str, DataType] = dict.fromkeys("abcde", INT)
    assert "by 5 columns: Delta takes 4" in refusal(columns, cluster_columns=tuple("abcde")).what
    check(columns, cluster_columns=tuple("abcd"))


@pytest.mark.parametrize(
    "kind", [BooleanType(), BinaryType(), ArrayType(INT), MapType(TEXT, INT), INNER, VariantType()], ids=str
)
def test_clusters_have_ranges(kind: DataType):
    """A column of which Delta keeps no least and greatest value is not clustered by."""
    error = refusal({"id": INT, "m": kind}, cluster_columns=("M",))
    assert f"by 'M', which is {kind.simpleString()}" in error.what


def test_types_that_tables_are_clustered_by():
    """Numbers, texts, dates and timestamps are not in the way."""
    for kind in (
        INT,
        TEXT,
        DoubleType(),
        DecimalType(5, 2),
        DateType(),
        TimestampType(),
        TimestampNTZType(),
    ):
        check({"id": INT, "m": kind}, cluster_columns=("m",))
