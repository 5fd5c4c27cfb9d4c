"""Small batches on the driver: rows that fit are collected once as Arrow and go on as local relations of one partition.

These need no shuffle and can't change between two reads. Other rows go through Spark: both ways give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from headwater_spark.plans.schemas import stored_schema
from headwater_spark.plans.session_settings import session_settings

# A batch is collected on the driver up to so many rows and bytes (in Spark's cache).
LOCAL_ROWS, LOCAL_BYTES = 100_000, 32 * 1024 * 1024
_ATOMIC = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.BinaryType, T.DateType, T.TimestampType,
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Rows that are read more than once. ``table``: the same as Arrow, if they are on the driver; else see ``not_local``."""

    frame: DataFrame
    table: Any = None
    not_local: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the rows are on the driver."""
        return self.table is not None


def is_atomic(kind: DataType) -> bool:
    """Whether a type is a plain one that Spark, Arrow and delta-rs agree on."""
    return isinstance(kind, _ATOMIC) or is_text(kind)


def is_plain(kind: DataType, *, nullable: bool = False) -> bool:
    """Whether values of a type pass through Arrow unchanged. ``nullable``: whether one of them may be NULL."""
    if isinstance(kind, StructType):
        # Below a NULL, Arrow has NULLs in all fields, and refuses them in a NOT NULL field.
        has_none = nullable and not all(field.nullable for field in kind.fields)
        return not has_none and all(is_plain(f.dataType, nullable=f.nullable) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return is_plain(kind.elementType, nullable=kind.containsNull)
    if isinstance(kind, MapType):
        return is_plain(kind.keyType) and is_plain(kind.valueType, nullable=kind.valueContainsNull)
    return is_atomic(kind)


def arrow_form(schema: StructType) -> Any:
    """The Arrow schema of a table's rows, all columns nullable; times are instants."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(stored_schema(schema), timezone="UTC")


def local_if_small(cached_rows: DataFrame, count: int) -> Rows:
    """``cached_rows``, collected on the driver if they are few and of plain types."""
    if count > LOCAL_ROWS:
        return Rows(cached_rows, not_local=f"more than {LOCAL_ROWS} events")
    if not is_plain(cached_rows.schema):
        return Rows(cached_rows, not_local="an event has a type that Arrow does not carry as it is")
    size = cached_rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()  # noqa: SLF001 - no public size
    if int(str(size)) > LOCAL_BYTES:
        return Rows(cached_rows, not_local=f"more than {LOCAL_BYTES} bytes of events")
    return on_driver(cached_rows)


def on_driver(frame: DataFrame) -> Rows:
    """The frame's rows, collected on the driver."""
    # One partition has nothing to adapt, and with AQE each exchange would be a job of its own.
    with session_settings(frame.sparkSession, {"spark.sql.adaptive.enabled": "false"}):
        table = frame.toArrow()
    return Rows(local_frame(frame.sparkSession, table, frame.schema), table)


def local_frame(spark: SparkSession, table: Any, schema: StructType) -> DataFrame:
    """A frame of Arrow rows in one partition, so that windows and joins of such frames need no shuffle."""
    if table.num_rows == 0:  # a struct column without a chunk can't be converted
        return spark.createDataFrame([], schema).coalesce(1)
    # Spark stops reading at an empty chunk, and loses the rows behind it.
    return spark.createDataFrame(table.combine_chunks(), schema).coalesce(1)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, cached inside the block."""
    persisted = frame.persist()
    try:
        yield persisted
    finally:
        persisted.unpersist()


@contextmanager
def reusable(frame: DataFrame, *, local: bool) -> Iterator[Rows]:
    """The frame's rows, for reading more than once inside the block: on the driver if ``local``, else cached."""
    if local:
        yield on_driver(frame)
        return
    with cached(frame) as cached_rows:
        yield Rows(cached_rows)


def is_text(kind: DataType | None) -> bool:
    """Whether values of a type are texts that are equal only where their bytes are."""
    # Collated texts are equal where their bytes differ.
    return isinstance(kind, StringType) and kind.simpleString() == "string"
