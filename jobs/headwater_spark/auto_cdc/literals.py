"""Values of a query's result as literals in another query, exact whatever the time zone."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructType, TimestampType


def encoded(value: Column, kind: DataType) -> Column:
    """``value`` in a form that passes through the driver unchanged."""
    if isinstance(kind, StructType):
        return F.when(
            value.isNotNull(),
            F.struct(*(encoded(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields)),
        )
    if isinstance(kind, TimestampType):
        return F.unix_micros(value)
    return F.hex(value) if isinstance(kind, BinaryType) else value.cast("string")


def literal(value: Any, kind: DataType) -> Column:
    """The literal of an ``encoded`` value."""
    if value is None:
        return F.lit(None).cast(kind)
    if isinstance(kind, StructType):
        return F.struct(
            *(literal(part, f.dataType).alias(f.name) for part, f in zip(value, kind.fields, strict=True))
        )
    if isinstance(kind, TimestampType):
        return F.timestamp_micros(F.lit(value))
    return F.unhex(F.lit(value)) if isinstance(kind, BinaryType) else F.lit(value).cast(kind)
