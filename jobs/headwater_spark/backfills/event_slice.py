"""The rows of a table whose event time is in a range: as a condition, and as counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from headwater.backfills.backfill_range import BackfillRange
from headwater.backfills.conditions import InvalidRange
from headwater.definitions.dataset import Dataset
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schema_text import GENERATED


@dataclass(frozen=True)
class SliceSize:
    """How many rows of a table are in the range, the bytes of the files with such rows, and the table's bytes per row."""

    rows: int
    file_bytes: int
    bytes_a_row: float


def slice_condition(
    chosen: BackfillRange, columns: StructType, dataset: Dataset, *, of_query: bool = False
) -> str:
    """The range as SQL text over the table's columns; NULL is in no range.

    Args:
        of_query: over the columns that the table's queries return: a column that Delta generates stands for its expression.

    Raises:
        InvalidRange: the table has no such column, or one that is neither a time nor a date.
    """
    column = (chosen.column or "").lower()
    field = next((field for field in columns.fields if field.name.lower() == column), None)
    times = [
        f.name for f in columns.fields if isinstance(f.dataType, DateType | TimestampType | TimestampNTZType)
    ]
    remedy = f"Columns with times or dates: {', '.join(times) or 'none; choose another kind of range'}."
    if field is None:
        raise InvalidRange(
            f"{dataset.name!r} has no column {chosen.column!r}.", where=dataset.location, remedy=remedy
        )
    generated = (field.metadata or {}).get(GENERATED) if of_query else None
    name = quoted(field.name) if generated is None else f"({generated})"
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
            f"The column {column!r} is {kind.simpleString()}, which is not a time.", remedy=remedy
        )
    if moment.time() != datetime.min.time():
        raise InvalidRange(
            f"The column {column!r} has dates, and {text} is within a day.", remedy="Give whole days, in UTC."
        )
    return f"DATE '{moment:%Y-%m-%d}'"


def slice_size(session: SparkSession, table: Place, condition: str | None, version: int | None) -> SliceSize:
    """Count how much of a version of a table (None: the newest) is in the range. ``condition`` None: nothing."""
    reader = session.read.format("delta")
    reader = reader if version is None else reader.option("versionAsOf", str(version))
    files = reader.load(str(table)).select(
        "_metadata.file_path", "_metadata.file_size", F.expr(condition or "false").alias("inside")
    )
    by_file = files.groupBy("file_path", "file_size").agg(
        F.count("*").alias("rows"), F.count_if("inside").alias("inside")
    )
    of_range = F.when(F.col("inside") > 0, F.col("file_size"))
    totals = by_file.agg(F.sum("inside"), F.sum(of_range), F.sum("file_size"), F.sum("rows")).collect()[0]
    inside, inside_bytes, table_bytes, rows = (int(value or 0) for value in totals)
    return SliceSize(inside, inside_bytes, table_bytes / rows if rows else 0.0)
