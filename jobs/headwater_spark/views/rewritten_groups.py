"""Few groups of new rows, merged into the files of a view that have these groups, by one pass over them.

The groups are collected; which of them the view has, and in which files, is read from its log and its Parquet files without
Spark. A MERGE would look for that by a job over the whole view, and write by another.

Decision 0170.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.delta_log.file_bounds import Sought, TableFile, comparable, table_files
from headwater.delta_log.table_history import head_version
from headwater.storage.place import Place
from headwater.storage.walking import readable
from headwater_spark.auto_cdc.on_driver.look_up import is_plain_table
from headwater_spark.auto_cdc.on_driver.rows import LOCAL_ROWS, is_plain, local_frame
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import same_key
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, DataFile, RowCounts, file_rewrite
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import stored_schema
from headwater_spark.views.stored_types import StoredTable, stored_table

# The files that may have one of the groups are looked into up to so many rows.
MAX_SCANNED_ROWS, MAX_FILES = 3_000_000, 500
# Keys that Parquet has as Arrow reads them: of others (times, above all) the same value may be stored in several ways.
_KEYS = {"tinyint", "smallint", "int", "bigint", "date", "string", "boolean"}
_THERE = "__headwater_there"


@dataclass(frozen=True)
class _Matches:
    """``files``: those that have one of the groups; ``known``: whether the view has it, for each group in its order."""

    version: int
    files: list[DataFile]
    known: list[bool]


def rewrite_groups(
    table: Place,
    rows: DataFrame,
    keys: Sequence[str],
    merged: Mapping[str, Column],
    transaction: BatchTransaction,
) -> bool:
    """Bring groups of a table up to date, in one commit.

    Args:
        rows: the groups of new rows, with the table's columns.
        keys: the columns that name a group; NULL is a value.
        merged: of the others the new value, over columns of ``t`` (the table) and ``s`` (``rows``), in the table's types.

    Returns:
        False where a MERGE has to do it: too many groups or rows, features or types that differ between readers. Nothing is
        written then.
    """
    stored, schema = stored_table(table), stored_schema(rows.schema)
    if not _fits(table, stored, schema, keys):
        return False
    # One row more than is taken says that there are too many.
    groups = rows.limit(LOCAL_ROWS + 1).toArrow().combine_chunks()
    if groups.num_rows > LOCAL_ROWS:
        return False
    matches = _matches(table, groups, keys)
    if matches is None:
        return False
    spark, counts = rows.sparkSession, RowCounts(matches.known.count(False), matches.known.count(True), 0)
    with file_rewrite(spark, table, matches.version, matches.files, transaction) as opened:
        if isinstance(opened, str):
            return False
        feed = stored.has_change_feed and bool(matches.files)
        written = _new_groups(spark, groups, schema, matches.known, feed=feed).select(
            *_names(stored, feed=feed)
        )
        if matches.files:
            there = _with_news(opened.rows, local_frame(spark, groups, schema), keys, merged, feed=feed)
            written = there.select(*_names(stored, feed=feed)).unionByName(written)
        return opened.commit(written, counts, transaction) is None


def _fits(table: Place, stored: StoredTable, schema: StructType, keys: Sequence[str]) -> bool:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    return (
        types == stored.types
        and is_plain(schema)
        and all(types[key] in _KEYS for key in keys)
        and is_plain_table(table)
    )


def _names(stored: StoredTable, *, feed: bool) -> list[str]:
    return [quoted(name) for name in stored.types] + ([CHANGE_TYPE] if feed else [])


def _matches(table: Place, groups: Any, keys: Sequence[str]) -> _Matches | None:
    """Which groups a table has; None where it is not known without a pass over more than can be looked into."""
    version = head_version(table)
    every = table_files(table, version, keys)
    if every is None:
        return None
    sought = [_sought(key, groups[key].to_pylist()) for key in keys]
    known_bounds = [one for one in sought if one is not None]
    candidates = [file for file in every if file.may_have(known_bounds)]
    counts = [file.records for file in candidates]
    if (
        None in counts
        or len(candidates) > MAX_FILES
        or sum(count or 0 for count in counts) > MAX_SCANNED_ROWS
    ):
        return None
    wanted = _tuples(groups, keys)
    there: set[tuple[Any, ...]] = set()
    files = []
    for file in candidates:
        own = _keys_in(table, file, keys) & set(wanted)
        if own:
            files.append(DataFile(file.path, file.bytes, file.modified, file.records or 0))
            there |= own
    return _Matches(version, files, [group in there for group in wanted])


def _sought(key: str, values: Sequence[Any]) -> Sought | None:
    there = {value for value in values if value is not None}
    plain = [bound for value in there if (bound := comparable(value)) is not None]
    if len(plain) < len(there):
        return None
    return Sought(key, tuple(sorted(plain)), None in values)


def _keys_in(table: Place, file: TableFile, keys: Sequence[str]) -> set[tuple[Any, ...]]:
    from pyarrow import parquet

    rows = parquet.read_table(readable(table / file.path), columns=list(keys), partitioning=None)
    return set(_tuples(rows, keys))


def _tuples(rows: Any, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(rows[key].to_pylist() for key in keys), strict=True)) if keys else [()] * rows.num_rows


def _new_groups(
    spark: SparkSession, groups: Any, schema: StructType, known: Sequence[bool], *, feed: bool
) -> DataFrame:
    import pyarrow as pa

    new = local_frame(spark, groups.filter(pa.array([not one for one in known], pa.bool_())), schema)
    if not feed:
        return new
    return new.select("*", F.explode(F.array(F.lit(None).cast("string"), F.lit("insert"))).alias(CHANGE_TYPE))


def _with_news(
    there: DataFrame, groups: DataFrame, keys: Sequence[str], merged: Mapping[str, Column], *, feed: bool
) -> DataFrame:
    """The rows of the files, those of the groups with their new values; for the feed also before and after."""
    news = F.broadcast(groups.withColumn(_THERE, F.lit(True)).alias("s"))
    joined = there.alias("t").join(news, same_key(keys), "left")
    matched = F.col(f"s.{_THERE}").isNotNull()
    kinds = F.when(
        matched, F.array(F.lit(None).cast("string"), F.lit("update_preimage"), F.lit("update_postimage"))
    )
    if feed:
        kinds = F.explode(kinds.otherwise(F.array(F.lit(None).cast("string"))))
        joined = joined.withColumn(CHANGE_TYPE, kinds)
        matched = matched & ~F.col(CHANGE_TYPE).eqNullSafe(F.lit("update_preimage"))
    values = [
        F.when(matched, merged[name]).otherwise(F.col(f"t.{quoted(name)}")).alias(name)
        if name in merged
        else F.col(f"t.{quoted(name)}").alias(name)
        for name in there.columns
    ]
    return joined.select(*values, *([F.col(CHANGE_TYPE)] if feed else []))
