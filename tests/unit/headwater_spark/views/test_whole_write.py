"""When all rows of a view are written by naming the files that go."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructField, StructType

from headwater_spark.views.whole_write import same_columns


def schema(*fields: tuple[str, DataType, str]) -> StructType:
    """Columns with their comments."""
    return StructType(
        [StructField(name, kind, metadata={"comment": text} if text else None) for name, kind, text in fields]
    )


STORED = schema(("id", LongType(), ""), ("name", StringType(), "of people"))


@pytest.mark.parametrize(
    ("rows", "same"),
    [
        (STORED, True),
        (schema(("name", StringType(), "of people"), ("id", LongType(), "")), False),
        (schema(("id", IntegerType(), ""), ("name", StringType(), "of people")), False),
        (schema(("id", LongType(), ""), ("name", StringType(), "of places")), False),
        (schema(("id", LongType(), "")), False),
        (schema(("ID", LongType(), ""), ("name", StringType(), "of people")), False),
    ],
)
def test_only_files_change(rows: StructType, same: bool) -> None:
    """The same columns in the same order, with the same comments; else Delta's own command writes the new ones down."""
    assert same_columns(rows, STORED) is same


def test_columns_with_parts_are_left_to_delta() -> None:
    """Their parts may be NULL or not, and have comments, too."""
    nested = schema(("tags", ArrayType(StringType()), ""))
    assert not same_columns(nested, nested)
