"""The values of a merge's source as the columns of its target take them.

Decision 0122.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headwater_spark.java_classes import PYTHON_UTILS, java_class
from headwater_spark.plans.names import quoted


def merged_values(names: Iterable[str], source: DataFrame, target: StructType) -> dict[str, str | Column]:
    """What a merge of ``source``, as ``s``, sets columns to.

    Events may be NULL in every field. A target may have structs with NOT NULL fields: MERGE casts no other struct to these, so
    such fields are asserted to have a value, in rows that are written.

    Args:
        names: the columns to set.
        target: the columns that the target has; MERGE adds the others.

    Returns:
        expressions by quoted column name.
    """
    target_types = {field.name.lower(): field.dataType for field in target.fields}
    source_types = {field.name.lower(): field.dataType for field in source.schema.fields}
    values: dict[str, str | Column] = {}
    for name in names:
        value, target_type = F.col(quoted("s", name)), target_types.get(name.lower())
        if target_type is not None and _requires(target_type):
            value = _required(source.sparkSession, value, source_types[name.lower()], target_type, (name,))
        values[quoted(name)] = value
    return values


def _requires(kind: DataType) -> bool:
    """Whether a type has a NOT NULL field inside."""
    if isinstance(kind, StructType):
        return any(not field.nullable or _requires(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _requires(kind.elementType)
    if isinstance(kind, MapType):
        return not kind.valueContainsNull or _requires(kind.keyType) or _requires(kind.valueType)
    return False


def _required(
    spark: SparkSession, value: Column, kind: DataType, target: DataType, path: tuple[str, ...]
) -> Column:
    """``value`` with fields that are known to have a value where those of ``target`` must."""
    if not _requires(target):
        return value

    def part(
        inner: Column, inner_kind: DataType, inner_target: DataType, *, nullable: bool, name: str
    ) -> Column:
        inner_path = (*path, name)
        inner = _required(spark, inner, inner_kind, inner_target, inner_path)
        return inner if nullable else _not_null(spark, inner, inner_path)

    if isinstance(target, StructType) and isinstance(kind, StructType):
        inner_target = {field.name.lower(): field for field in target.fields}
        parts = []
        for field in kind.fields:
            inner, target_field = value.getField(field.name), inner_target.get(field.name.lower())
            if target_field is not None:
                inner = part(
                    inner,
                    field.dataType,
                    target_field.dataType,
                    nullable=target_field.nullable,
                    name=field.name,
                )
            parts.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(target, ArrayType) and isinstance(kind, ArrayType):
        old, new, may = target.elementType, kind.elementType, target.containsNull
        return F.transform(value, lambda element: part(element, new, old, nullable=may, name="element"))
    assert isinstance(target, MapType)
    assert isinstance(kind, MapType)
    kinds = (kind.valueType, target.valueType)
    return F.transform_values(
        value, lambda _, inner: part(inner, *kinds, nullable=target.valueContainsNull, name="value")
    )


def _not_null(spark: SparkSession, value: Column, path: tuple[str, ...]) -> Column:
    """The value; NULL is an error. Spark's INSERT asserts the same, but there is no function for it."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public face
    convert = java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils")
    asserted = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull")(
        convert.expression(value._jc),  # noqa: SLF001
        java_class(jvm, PYTHON_UTILS).toSeq(list(path)),
    )
    return Column(convert.column(asserted))
