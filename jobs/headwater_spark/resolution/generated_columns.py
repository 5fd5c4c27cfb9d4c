"""Columns that a table computes: have Delta judge their expressions before anything is written."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from headwater.definitions.dataset import Dataset
from headwater.errors import UnsupportedArgument
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.java_classes import java_class
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.schema_text import GENERATED
from headwater_spark.plans.schemas import plain_schema

# The field's metadata by which Delta knows such a column.
_EXPRESSION = "delta.generationExpression"


def check_generated(session: SparkSession, dataset: Dataset) -> None:
    """Check the expressions of ``GENERATED ALWAYS AS (expression)`` in a table's schema.

    Raises:
        UnsupportedArgument: one names no column, is of another type than its column, or is none that Delta computes.
    """
    schema = plain_schema(dataset.schema, dataset.location)
    computed = (
        [f.name for f in schema.fields if GENERATED in (f.metadata or {})] if schema is not None else []
    )
    if schema is None or not computed:
        return
    marked = StructType([_as_delta_has_it(field) for field in schema.fields])
    inner = session._jsparkSession  # noqa: SLF001 - Delta's check has no public face in Python
    judge = getattr(java_class(session._jvm, f"{DELTA}.GeneratedColumn$"), "MODULE$")  # noqa: SLF001
    try:
        judge.validateGeneratedColumns(inner, inner.parseDataType(marked.json()))
    except PySparkException as error:
        raise UnsupportedArgument(
            f"schema: Delta can't compute {', '.join(map(repr, computed))} of {dataset.name!r}: {describe(error)}",
            where=dataset.location,
            remedy="Write an expression of the column's own type over the columns that the query returns: "
            "d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)). Else compute the value in the query.",
        ) from None


def _as_delta_has_it(field: StructField) -> StructField:
    expression = (field.metadata or {}).get(GENERATED)
    metadata = {} if expression is None else {_EXPRESSION: expression}
    return StructField(field.name, field.dataType, field.nullable, metadata)
