"""Small batches on the driver: their rows, and what tables hold about their keys, without a Spark job for each look.

A merge's own time is fixed by Spark and Delta. What AUTO CDC does besides is to cost little: rows that fit are collected
once as Arrow and go on as local relations of one partition, which need no shuffle and can't change between two reads;
tables are asked through their log and Parquet files alone. What does not fit, or is of another kind, goes through
Spark as before: both ways give the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

# A batch is held on the driver up to so many rows and bytes (as Spark keeps them).
LOCAL_ROWS, LOCAL_BYTES = 100_000, 32 * 1024 * 1024
# A table is asked without Spark where the files that may hold the batch's keys have at most so many rows and bytes.
ASKED_ROWS, ASKED_BYTES = 3_000_000, 256 * 1024 * 1024
_MANY_FILES = 2_000
_ATOMIC = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.BinaryType, T.DateType, T.TimestampType,
)  # fmt: skip
# Keys that Arrow compares as Spark does, with statistics that bound them exactly.
_FOUND_BY = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType)


@dataclass(frozen=True)
class Held:
    """Rows that are read more than once. ``table``: the same as Arrow, where they are on the driver."""

    frame: DataFrame
    table: Any = None

    @property
    def is_local(self) -> bool:
        """Whether the rows are on the driver."""
        return self.table is not None


def is_atomic(kind: DataType) -> bool:
    """Whether a type is a plain one that Spark, Arrow and delta-rs agree on."""
    return isinstance(kind, _ATOMIC) or _is_text(kind)


def is_plain(kind: DataType) -> bool:
    """Whether values of a type come through Arrow as they are."""
    if isinstance(kind, StructType):
        return all(is_plain(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return is_plain(kind.elementType)
    if isinstance(kind, MapType):
        return is_plain(kind.keyType) and is_plain(kind.valueType)
    return is_atomic(kind)


def local_if_small(kept: DataFrame, count: int) -> Held:
    """``kept``, a frame whose rows are cached, on the driver if they are few and of plain types; else itself."""
    if count > LOCAL_ROWS or not is_plain(kept.schema):
        return Held(kept)
    size = kept._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()  # noqa: SLF001 - no public size
    return on_driver(kept) if int(str(size)) <= LOCAL_BYTES else Held(kept)


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
def held(frame: DataFrame, *, local: bool) -> Iterator[Held]:
    """The frame's rows, to be read more than once inside the block: on the driver if ``local``, else cached."""
    if local:
        yield on_driver(frame)
        return
    kept = frame.persist()
    try:
        yield Held(kept)
    finally:
        kept.unpersist()


def rows_about(
    spark: SparkSession, path: Path, keys: Sequence[str], asking: Any, *, schema: StructType | None = None
) -> DataFrame | None:
    """The rows of a Delta table whose keys may be among those of ``asking``, read without a Spark job.

    Args:
        asking: Arrow rows with the columns ``keys``.
        schema: the table's, where it is known.

    Returns:
        a local frame; it may hold more rows than asked for. None where the table has to be read by Spark: features or
        types that differ between readers, partitions, or too much to look through.
    """
    from deltalake import DeltaTable as LogReader

    log = LogReader(str(path))
    schema = schema or StructType.fromJson(json.loads(log.schema().to_json()))
    table = _about(log, schema, keys, asking)
    return None if table is None else local_frame(spark, table, schema)


def all_known(path: Path, keys: Sequence[str], asking: Any) -> bool:
    """Whether a Delta table certainly has a row of each of the keys of ``asking``, Arrow rows; without a Spark job."""
    from deltalake import DeltaTable as LogReader

    log = LogReader(str(path))
    schema = StructType.fromJson(json.loads(log.schema().to_json()))
    kinds = {field.name: field.dataType for field in schema.fields}
    if not all(isinstance(kinds.get(key), _FOUND_BY) or _is_text(kinds.get(key)) for key in keys):
        return False
    found = _about(log, schema, keys, asking, only=keys)
    if found is None:
        return False
    asked = asking.select(list(keys))
    return bool(asked.join(found.cast(asked.schema), list(keys), join_type="left anti").num_rows == 0)


def _about(
    log: Any, schema: StructType, keys: Sequence[str], asking: Any, only: Sequence[str] | None = None
) -> Any:
    """Rows as Arrow that may have the keys of ``asking``, ``only`` some columns of them; None where Spark has to look."""
    if log.protocol().min_reader_version > 1 or log.metadata().partition_columns or not is_plain(schema):
        return None
    names = {field.name.lower(): field for field in schema.fields}
    fields = [names[key.lower()] for key in keys if key.lower() in names]
    found_by = [f.name for f in fields if isinstance(f.dataType, _FOUND_BY) or _is_text(f.dataType)]
    wanted = {f.name: key for f, key in zip(fields, keys, strict=True)} if len(fields) == len(keys) else {}
    if not wanted or not found_by:
        return None
    return _matching(log, [(name, asking.column(wanted[name]).combine_chunks()) for name in found_by], only)


def _matching(log: Any, sought: list[tuple[str, Any]], only: Sequence[str] | None) -> Any:
    """The rows that have one of the sought values in each of the columns; None where too many have to be looked at."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import dataset as ds

    actions = pa.table(log.get_add_actions(flatten=True))
    if actions.num_rows == 0 or actions.num_rows > _MANY_FILES:
        return None
    may_match = pa.array([True] * actions.num_rows)
    # Spark writes times in a form whose years end in 2262 unless they are read so.
    options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    rows = log.to_pyarrow_dataset(parquet_read_options=options)
    condition = None
    for name, values in sought:
        low, high = compute.min_max(values).values()
        if f"min.{name}" in actions.column_names:
            below = compute.less(actions[f"max.{name}"], low.cast(actions.schema.field(f"max.{name}").type))
            above = compute.greater(
                actions[f"min.{name}"], high.cast(actions.schema.field(f"min.{name}").type)
            )
            out = compute.fill_null(compute.or_(below, above), False)
            may_match = compute.and_(may_match, compute.invert(out))
        field, kind = compute.field(name), rows.schema.field(name).type
        part = (field >= low.cast(kind)) & (field <= high.cast(kind)) & field.isin(values.cast(kind).unique())
        condition = part if condition is None else condition & part
    may = actions.filter(may_match)
    counts = may["num_records"].to_pylist()
    if None in counts or sum(counts) > ASKED_ROWS or sum(may["size_bytes"].to_pylist()) > ASKED_BYTES:
        return None
    names = None if only is None else [name for name in rows.schema.names if name in only]
    return rows.to_table(columns=names, filter=condition)


def _is_text(kind: DataType | None) -> bool:
    # Collated texts are equal where their bytes differ.
    return isinstance(kind, StringType) and kind.simpleString() == "string"
