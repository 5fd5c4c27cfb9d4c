"""The values of a merge's source as the columns of its target take them.

Decision 0122.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headwater_spark.auto_cdc.change_columns import quoted


def merged_values(names: Iterable[str], source: DataFrame, target: StructType) -> dict[str, str | Column]:
    """What a merge of ``source``, as ``s``, sets columns to.

    Events may be NULL in every field. A target may have structs with fields that are NOT NULL: MERGE casts no other struct to
    these, so such fields are asserted to have a value. Only rows that are written are looked at.

    Args:
        names: the columns to set.
        target: the columns that the target has; others are about to be added to it.

    Returns:
        expressions by quoted column name.
    """
    held = {field.name.lower(): field.dataType for field in target.fields}
    given = {field.name.lower(): field.dataType for field in source.schema.fields}
    values: dict[str, str | Column] = {}
    for name in names:
        value, known = F.col(quoted("s", name)), held.get(name.lower())
        if known is not None and _requires(known):
            value = _required(source.sparkSession, value, given[name.lower()], known, (name,))
        values[quoted(name)] = value
    return values


def _requires(kind: DataType) -> bool:
    """Whether there is a field inside a type that is never to be NULL."""
    if isinstance(kind, StructType):
        return any(not field.nullable or _requires(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _requires(kind.elementType)
    if isinstance(kind, MapType):
        return not kind.valueContainsNull or _requires(kind.keyType) or _requires(kind.valueType)
    return False


def _required(
    spark: SparkSession, value: Column, given: DataType, held: DataType, path: tuple[str, ...]
) -> Column:
    """``value`` with fields that are known to have a value where those of ``held`` must."""
    if not _requires(held):
        return value

    def part(inner: Column, kind: DataType, known: DataType, *, nullable: bool, name: str) -> Column:
        where = (*path, name)
        inner = _required(spark, inner, kind, known, where)
        return inner if nullable else _not_null(spark, inner, where)

    if isinstance(held, StructType) and isinstance(given, StructType):
        known = {field.name.lower(): field for field in held.fields}
        parts = []
        for field in given.fields:
            inner, wanted = value.getField(field.name), known.get(field.name.lower())
            if wanted is not None:
                inner = part(
                    inner, field.dataType, wanted.dataType, nullable=wanted.nullable, name=field.name
                )
            parts.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(held, ArrayType) and isinstance(given, ArrayType):
        old, new, may = held.elementType, given.elementType, held.containsNull
        return F.transform(value, lambda element: part(element, new, old, nullable=may, name="element"))
    assert isinstance(held, MapType)
    assert isinstance(given, MapType)
    kinds = (given.valueType, held.valueType)
    return F.transform_values(
        value, lambda _, inner: part(inner, *kinds, nullable=held.valueContainsNull, name="value")
    )


def _not_null(spark: SparkSession, value: Column, path: tuple[str, ...]) -> Column:
    """The value; it is an error where that is NULL. Spark's INSERT asserts the same, and has no function for it."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public face
    convert = jvm.org.apache.spark.sql.classic.ExpressionUtils
    asserted = jvm.org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull(
        convert.expression(value._jc),  # noqa: SLF001
        jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(path)),
    )
    return Column(convert.column(asserted))
