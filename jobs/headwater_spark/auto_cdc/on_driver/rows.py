"""Small batches on the driver: rows that fit are collected once as Arrow and go on as local relations of one partition.

These need no shuffle and can't change between two reads. What does not fit, or is of another kind, goes through Spark as
before: both ways give the same rows.
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

# A batch is held on the driver up to so many rows and bytes (as Spark keeps them).
LOCAL_ROWS, LOCAL_BYTES = 100_000, 32 * 1024 * 1024
_ATOMIC = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.BinaryType, T.DateType, T.TimestampType,
)  # fmt: skip


@dataclass(frozen=True)
class Held:
    """Rows that are read more than once. ``table``: the same as Arrow, where they are on the driver; else ``not_local`` says
    why they are not.
    """

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
    """Whether values of a type come through Arrow as they are. ``nullable``: whether one of them may be NULL."""
    if isinstance(kind, StructType):
        # Below a NULL, Arrow has NULLs in all fields, and refuses those of a field that is to have none.
        has_none = nullable and not all(field.nullable for field in kind.fields)
        return not has_none and all(is_plain(f.dataType, nullable=f.nullable) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return is_plain(kind.elementType, nullable=kind.containsNull)
    if isinstance(kind, MapType):
        return is_plain(kind.keyType) and is_plain(kind.valueType, nullable=kind.valueContainsNull)
    return is_atomic(kind)


def arrow_form(schema: StructType) -> Any:
    """The Arrow schema of rows that have a table's columns, all of them nullable; times are instants."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(stored_schema(schema), timezone="UTC")


def local_if_small(kept: DataFrame, count: int) -> Held:
    """``kept``, a frame whose rows are cached, on the driver if they are few and of plain types; else itself."""
    if count > LOCAL_ROWS:
        return Held(kept, not_local=f"more than {LOCAL_ROWS} events")
    if not is_plain(kept.schema):
        return Held(kept, not_local="an event has a type that Arrow does not carry as it is")
    size = kept._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()  # noqa: SLF001 - no public size
    if int(str(size)) > LOCAL_BYTES:
        return Held(kept, not_local=f"more than {LOCAL_BYTES} bytes of events")
    return on_driver(kept)


def on_driver(frame: DataFrame) -> Held:
    """The frame's rows, collected: evaluated once, here."""
    # What has one partition has nothing to adapt, and each exchange would be a job of its own.
    with setting(frame.sparkSession, "spark.sql.adaptive.enabled", "false"):
        table = frame.toArrow()
    return Held(local_frame(frame.sparkSession, table, frame.schema), table)


def local_frame(spark: SparkSession, table: Any, schema: StructType) -> DataFrame:
    """A frame of Arrow rows in one partition, so that windows and joins of such frames need no shuffle."""
    if table.num_rows == 0:  # a struct column without a chunk can't be converted
        return spark.createDataFrame([], schema).coalesce(1)
    # Spark stops reading at an empty chunk, and says nothing of the rows behind it.
    return spark.createDataFrame(table.combine_chunks(), schema).coalesce(1)


@contextmanager
def setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Give a setting of the batch's own session another value inside the block."""
    before = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, before)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, cached inside the block."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def held(frame: DataFrame, *, local: bool) -> Iterator[Held]:
    """The frame's rows, to be read more than once inside the block: on the driver if ``local``, else cached."""
    if local:
        yield on_driver(frame)
        return
    with cached(frame) as kept:
        yield Held(kept)


def is_text(kind: DataType | None) -> bool:
    """Whether values of a type are texts that are equal where their bytes are."""
    # Collated texts are equal where their bytes differ.
    return isinstance(kind, StringType) and kind.simpleString() == "string"
