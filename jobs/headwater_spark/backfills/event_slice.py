"""The rows of a table whose event time lies in a range: as a condition, and as counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from headwater.backfills.backfill_range import BackfillRange
from headwater.backfills.conditions import InvalidRange
from headwater.definitions.dataset import Dataset
from headwater_spark.plans.names import quoted


@dataclass(frozen=True)
class SliceSize:
    """Rows of a table in the range, the bytes of the files that hold them, and of all of the table: bytes a row."""

    rows: int
    file_bytes: int
    bytes_a_row: float


def slice_condition(chosen: BackfillRange, columns: StructType, dataset: Dataset) -> str:
    """The range as SQL text over the table's columns; NULL is in no range.

    Raises:
        InvalidRange: the table has no such column, or one that is neither a time nor a date.
    """
    wanted = (chosen.column or "").lower()
    field = next((field for field in columns.fields if field.name.lower() == wanted), None)
    times = [
        f.name for f in columns.fields if isinstance(f.dataType, DateType | TimestampType | TimestampNTZType)
    ]
    remedy = f"Columns with times or dates: {', '.join(times) or 'none; choose another kind of range'}."
    if field is None:
        raise InvalidRange(
            f"{dataset.name!r} has no column {chosen.column!r}.", where=dataset.location, remedy=remedy
        )
    name = quoted(field.name)
    first, end = (_literal(value, field.dataType, field.name, remedy) for value in (chosen.start, chosen.end))
    return f"{name} >= {first} AND {name} < {end}"


def _literal(moment: datetime, kind: DataType, column: str, remedy: str) -> str:
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(kind, TimestampType):
        return f"TIMESTAMP '{text}+00:00'"
    if isinstance(kind, TimestampNTZType):
        return f"TIMESTAMP_NTZ '{text}'"
    if not isinstance(kind, DateType):
        raise InvalidRange(
            f"The column {column!r} is {kind.simpleString()}, which is no time.", remedy=remedy
        )
    if moment.time() != datetime.min.time():
        raise InvalidRange(
            f"The column {column!r} has dates, and {text} is within a day.", remedy="Give whole days, in UTC."
        )
    return f"DATE '{moment:%Y-%m-%d}'"


def slice_size(session: SparkSession, table: Path, condition: str | None, version: int | None) -> SliceSize:
    """How much of a version of a table (None: the newest) is in the range, by a real count.

    ``condition`` None: nothing of it.
    """
    reader = session.read.format("delta")
    reader = reader if version is None else reader.option("versionAsOf", str(version))
    held = reader.load(str(table))
    files = held.select(
        "_metadata.file_path", "_metadata.file_size", F.expr(condition or "false").alias("inside")
    )
    by_file = files.groupBy("file_path", "file_size").agg(
        F.count("*").alias("rows"), F.count_if("inside").alias("inside")
    )
    of_range = F.when(F.col("inside") > 0, F.col("file_size"))
    totals = by_file.agg(F.sum("inside"), F.sum(of_range), F.sum("file_size"), F.sum("rows")).collect()[0]
    inside, inside_bytes, whole, rows = (int(value or 0) for value in totals)
    return SliceSize(inside, inside_bytes, whole / rows if rows else 0.0)


def in_slice(frame: DataFrame, condition: str | None) -> DataFrame:
    """The rows in the range."""
    return frame if condition is None else frame.where(condition)
