"""Rewrites the files of changed rows, or marks the rows as deleted, without a MERGE that would search for them.

It needs a small batch, and the target's rows about the batch's keys on the driver. Where these are missing or have changed
since, nothing is written, and a MERGE has to do it.

Decision 0077, decision 0208.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructType

from headwater_spark.auto_cdc.change_columns import OWN
from headwater_spark.auto_cdc.on_driver.events import is_comparable
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.marking import split_files
from headwater_spark.auto_cdc.on_driver.rows import arrow_form, local_frame
from headwater_spark.auto_cdc.on_driver.verdict import engine
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import REMOVED
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, Marks, RowCounts, file_rewrite
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import stored_schema

_IS_DELETED = f"{OWN}goes"


@dataclass(frozen=True)
class _Changes:
    """Changes of a table's rows as Arrow with the table's columns; ``before``: what the updated rows were.

    ``file_of_updated``: for each updated row its file. ``changed``: by file, the numbers of the rows that are updated or
    deleted; where the table takes no deletion vectors, they are all -1.
    """

    inserted: Any
    updated: Any
    before: Any
    deleted: Any
    file_of_updated: Any
    changed: Mapping[str, Sequence[int]]

    @property
    def counts(self) -> RowCounts:
        return RowCounts(self.inserted.num_rows, self.updated.num_rows, self.deleted.num_rows)

    def new_rows(self, marked: Collection[str]) -> Any:
        """The rows that come into files of their own; ``marked``: the files in which updated rows are marked as deleted."""
        import pyarrow as pa
        from pyarrow import compute

        moves = compute.is_in(self.file_of_updated, pa.array(sorted(marked), pa.string()))
        return pa.concat_tables([self.inserted, self.updated.filter(moves)])


def rewrite(
    target: OpenTarget,
    matches: MatchingRows,
    changes: Any,
    identity: Sequence[str],
    transaction: BatchTransaction,
) -> str | None:
    """Write changes into a target, in one commit; only where ``reason_against`` returned None.

    Args:
        matches: the target's rows about the batch's keys.
        changes: Arrow rows with all of the target's columns; where ``__hw_removed`` is true, the row is deleted.
        identity: the columns that identify a row.

    Returns:
        None where it is done; else why a MERGE has to do it, and nothing is written.
    """
    schema = target.rows.schema
    split = _split(matches, changes, identity, schema)
    if isinstance(split, str):
        return split
    touched = {path: matches.files[path] for path in split.changed}
    files, marks = list(touched.values()), list[Marks]()
    if matches.row_in_file is not None:
        files, marks = split_files(touched, split.changed, split.counts.total)
    transaction = transaction.with_metadata(**engine(None))
    spark = target.rows.sparkSession
    with file_rewrite(spark, target.path, matches.version, files, transaction, marks=marks) as opened:
        if isinstance(opened, str):
            return opened
        new, has_change_feed = split.new_rows({mark.file.path for mark in marks}), matches.has_change_feed and bool(touched)  # fmt: skip
        if not files and not has_change_feed and new.num_rows == 0:
            return opened.commit(None, split.counts, transaction)
        rows = _added(spark, new, split, schema, has_change_feed=has_change_feed)
        if files:
            rewritten = _rewritten(opened.rows, split, identity, schema)
            rows = rewritten.select(*map(quoted, rows.columns)).unionByName(rows)
        return opened.commit(rows, split.counts, transaction)


def reason_against(
    target: OpenTarget, matches: MatchingRows, identity: Sequence[str], required: StructType
) -> str | None:
    """Why ``rewrite`` must not be tried: the table's features or columns, or the types of ``identity``; None where it may.

    ``required``: the columns that the target must have.
    """
    schema = target.rows.schema
    if matches.obstacle is not None:
        return matches.obstacle
    if not _same_columns(schema, required):
        return "the table has other columns than the flow"
    if not all(is_comparable(schema[name].dataType) for name in identity):
        return "a key or the sequence is of a type that Arrow compares otherwise"
    return None


def _same_columns(schema: StructType, required: StructType) -> bool:
    """Whether the table has the required columns, and no others."""
    kinds = {field.name: field.dataType.simpleString() for field in required.fields}
    return {field.name: field.dataType.simpleString() for field in schema.fields} == kinds


def _split(
    matches: MatchingRows, changes: Any, identity: Sequence[str], schema: StructType
) -> _Changes | str:
    """What is inserted, updated and deleted; or why that can't be determined."""
    import pyarrow as pa
    from pyarrow import compute

    form = arrow_form(schema)
    try:
        new = changes.select(form.names).cast(form)
        old = matches.rows.select(form.names).cast(form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return "a value does not fit its column as Arrow has it"
    names = [f"k{number}" for number in range(len(identity))]
    left, right = (rows.select(list(identity)).rename_columns(names) for rows in (new, old))
    left = left.append_column("new", pa.array(range(new.num_rows), pa.int64()))
    right = right.append_column("old", pa.array(range(old.num_rows), pa.int64()))
    both = left.append_column("gone", changes[REMOVED]).join(right, names, join_type="left outer")
    matched = both.filter(compute.is_valid(both["old"]))
    if both.num_rows != new.num_rows or len(matched["old"].unique()) != matched.num_rows:
        return "a key has several rows"
    exists, removed = compute.is_valid(both["old"]), both["gone"]
    updated = both.filter(compute.and_(exists, compute.invert(removed)))
    deleted = both.filter(compute.and_(exists, removed))
    inserted = both.filter(compute.and_(compute.invert(exists), compute.invert(removed)))
    return _Changes(
        new.take(inserted["new"]),
        new.take(updated["new"]),
        old.take(updated["old"]),
        old.take(deleted["old"]),
        matches.file_of.take(updated["old"].combine_chunks()),
        _by_file(matches, matched["old"].combine_chunks()),
    )


def _by_file(matches: MatchingRows, rows: Any) -> dict[str, list[int]]:
    """The files of rows, with the rows' numbers in them."""
    numbers = [-1] * len(rows) if matches.row_in_file is None else matches.row_in_file.take(rows).to_pylist()
    by_file: dict[str, list[int]] = {}
    for path, number in zip(matches.file_of.take(rows).to_pylist(), numbers, strict=True):
        by_file.setdefault(path, []).append(number)
    return by_file


def _added(
    spark: SparkSession, new: Any, split: _Changes, schema: StructType, *, has_change_feed: bool
) -> DataFrame:
    """The rows that are in no file yet: new ones, and those for the change feed.

    ``has_change_feed``: whether to write rows for the change feed; a commit that only adds files needs none.
    """
    import pyarrow as pa

    # All columns are nullable: otherwise Spark would optimize Delta's checks for NOT NULL away.
    if not has_change_feed:
        return local_frame(spark, new, stored_schema(schema))
    parts = [
        (new, None),
        (split.inserted, "insert"),
        (split.before, "update_preimage"),
        (split.updated, "update_postimage"),
        (split.deleted, "delete"),
    ]
    tagged = [
        rows.append_column(CHANGE_TYPE, pa.array([kind] * rows.num_rows, pa.string())) for rows, kind in parts
    ]
    return local_frame(spark, pa.concat_tables(tagged), stored_schema(schema).add(CHANGE_TYPE, StringType()))


def _rewritten(rows: DataFrame, split: _Changes, identity: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of the files as they are after the changes."""
    import pyarrow as pa

    updated = split.updated.append_column(_IS_DELETED, pa.array([False] * split.updated.num_rows, pa.bool_()))
    deleted = split.deleted.append_column(_IS_DELETED, pa.array([True] * split.deleted.num_rows, pa.bool_()))
    changed_rows = pa.concat_tables([updated, deleted])
    changed = local_frame(
        rows.sparkSession, changed_rows, stored_schema(schema).add(_IS_DELETED, BooleanType())
    )
    on: list[Column] = [F.col(quoted("t", name)) == F.col(quoted("u", name)) for name in identity]
    joined = rows.alias("t").join(F.broadcast(changed.alias("u")), on, "left")
    is_deleted = F.col(quoted("u", _IS_DELETED))
    values = [
        F.when(is_deleted.isNull(), F.col(quoted("t", f.name)))
        .otherwise(F.col(quoted("u", f.name)))
        .alias(f.name)
        for f in schema.fields
        if f.name not in identity
    ]
    same = [F.col(quoted("t", name)).alias(name) for name in identity]
    return joined.where(is_deleted.isNull() | ~is_deleted).select(
        *same, *values, F.lit(None).cast("string").alias(CHANGE_TYPE)
    )
