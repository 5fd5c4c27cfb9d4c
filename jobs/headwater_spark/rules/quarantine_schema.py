"""The columns of a quarantine table, also before it exists."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
    TimestampNTZType,
    VariantType,
)

from headwater.quarantine import columns as c
from headwater_spark.plans.schemas import needs_column_mapping

_OTHERS = {
    c.RULES: "array<string>",
    c.EPOCH: "int",
    c.BATCH: "bigint",
    c.PARTITION: "int",
    c.OFFSET: "bigint",
    c.SOURCE_VALUE: "binary",
    c.QUARANTINED_AT: "timestamp",
    c.STATUS_AT: "timestamp",
}


def own_fields(schema: StructType) -> list[StructField]:
    """The columns of a row that get columns of their own; all others are only in the JSON."""
    managed = {name.lower() for name in c.MANAGED}
    return [
        field
        for field in schema.fields
        if field.name.lower() not in managed
        and "`" not in field.name
        and not needs_column_mapping(StructType([field]))
        and _plain(field.dataType)
    ]


def empty_quarantine(session: SparkSession, schema: StructType) -> DataFrame:
    """An empty quarantine of rows with these columns."""
    first, *managed = c.MANAGED
    columns = [F.lit(None).cast("string").alias(first)]
    columns += [F.lit(None).cast(field.dataType).alias(field.name) for field in own_fields(schema)]
    columns += [F.lit(None).cast(_OTHERS.get(name, "string")).alias(name) for name in managed]
    return session.range(0).select(*columns)


def _plain(kind: DataType) -> bool:
    """Whether a type needs no Delta feature that readers without Spark may lack."""
    if isinstance(kind, NullType | VariantType | TimestampNTZType) or "interval" in kind.simpleString():
        return False
    if isinstance(kind, ArrayType):
        return _plain(kind.elementType)
    if isinstance(kind, MapType):
        return _plain(kind.keyType) and _plain(kind.valueType)
    return all(_plain(field.dataType) for field in kind.fields) if isinstance(kind, StructType) else True
