"""Merges a snapshot into its target: the two are compared, and only what differs is written, in one commit.

There is no side table: the target's rows (type 2: its open rows) are the last snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.definitions.change_conditions import DuplicateKey, NullKey
from headwater.errors import FlowFailed
from headwater_spark.auto_cdc.change_columns import END_AT, OWN, START_AT, ChangeColumns
from headwater_spark.auto_cdc.change_events import ROW, comparable, fitted, flat, row_of_table
from headwater_spark.auto_cdc.key_range import KeyRange, range_facts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.side_table import REMOVED
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.names import quoted

_OLD, _COUNT, _IS_OLD, _MOVED = f"{OWN}old", f"{OWN}count", f"{OWN}is_old", f"{OWN}moved"


@dataclass(frozen=True)
class SnapshotChanges:
    """What differs between a snapshot and its target. ``rows`` are cached."""

    columns: ChangeColumns
    rows: DataFrame
    count: int
    key_range: KeyRange


@contextmanager
def snapshot_changes(
    frame: DataFrame, columns: ChangeColumns, target: DeltaTable, where: object
) -> Iterator[SnapshotChanges]:
    """Compare a snapshot with its target; the result is cached while the block runs.

    Raises:
        NullKey, DuplicateKey: the keys do not identify a row.
        FlowFailed: the snapshot lacks a column that the table has.
    """
    _check_columns(columns, target, where)
    rows = _compared(frame, columns, target.toDF()).persist()
    try:
        facts = rows.agg(
            F.count(F.lit(1)).alias("count"),
            F.max(_no_key(columns)).alias("no_key"),
            F.max(_COUNT).alias("most"),
            *range_facts(columns),
        ).first()
        assert facts is not None
        if facts["no_key"]:
            raise NullKey(
                f"A row of a snapshot has a NULL in its key{columns.or_lost}; nothing of the snapshot was written.",
                where=where,
                remedy="Filter such rows out in the view or function that gives the snapshot.",
            )
        if facts["most"] is not None and facts["most"] > 1:
            raise _twice(rows, columns, where)
        yield SnapshotChanges(columns, rows, facts["count"], KeyRange.of(columns, facts))
    finally:
        rows.unpersist()


def merge_snapshot(
    changes: SnapshotChanges, version: Column, target: DeltaTable, transaction: BatchTransaction
) -> None:
    """Merge what differs."""
    columns = changes.columns
    source = _history(changes, version) if columns.history else _latest(changes)
    identity = [*columns.keys, START_AT] if columns.history else list(columns.keys)
    on = [F.col(quoted("t", name)) == F.col(quoted("s", name)) for name in identity]
    on.append(changes.key_range.condition("t"))
    if columns.history:  # what has ended stays
        on.append(F.col(f"t.{END_AT}").isNull())
    names = [*columns.names, START_AT, END_AT] if columns.history else columns.names
    values = merged_values(names, source, target.toDF().schema)
    merge = (
        target.alias("t").merge(source.alias("s"), reduce(Column.__and__, on)).withSchemaEvolution()
        .whenMatchedDelete(F.col(f"s.{REMOVED}"))
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~F.col(f"s.{REMOVED}"), values=values)
    )  # fmt: skip
    with committing(target.toDF().sparkSession, transaction):
        merge.execute()


def _compared(frame: DataFrame, columns: ChangeColumns, table: DataFrame) -> DataFrame:
    """The rows that differ: keys, the new row (NULL: deleted) and how many have its key, the old row with its start."""
    keys = list(columns.keys)
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    values = [fitted(F.col(quoted(f.name)), kinds[f.name], f.dataType).alias(f.name) for f in columns.fields]
    new_keys = [columns.stored_key(key).alias(key) for key in columns.keys]
    new = frame.select(*new_keys, F.struct(*values).alias(ROW))
    new = new.groupBy(*columns.key_columns).agg(F.first(ROW).alias(ROW), F.count(F.lit(1)).alias(_COUNT))
    if columns.history:
        table = table.where(F.col(END_AT).isNull())
    start = [F.col(START_AT)] if columns.history else []
    old = table.select(
        *columns.key_columns,
        row_of_table(table.schema, columns).alias(_OLD),
        F.lit(True).alias(_IS_OLD),
        *start,
    )
    both = new.join(old, keys, "full_outer")
    differs = ~_same(columns.names, columns)
    moved = ~_same(columns.tracked, columns) if columns.history else differs
    # A row without a key is among those that are new: it meets no row of the table.
    changed = F.col(_COUNT).isNull() | F.col(_IS_OLD).isNull() | (F.col(_COUNT) > 1)
    return both.where(changed | differs).withColumn(_MOVED, moved)


def _same(names: list[str] | tuple[str, ...], columns: ChangeColumns) -> Column:
    pairs = [
        comparable(F.col(quoted(ROW, name)), columns.type_of(name)).eqNullSafe(
            comparable(F.col(quoted(_OLD, name)), columns.type_of(name))
        )
        for name in names
        if name not in columns.keys
    ]
    return reduce(Column.__and__, pairs, F.lit(True))


def _latest(changes: SnapshotChanges) -> DataFrame:
    return flat(changes.rows.select(*changes.columns.key_columns, ROW, F.col(_COUNT).isNull().alias(REMOVED)), changes.columns)  # fmt: skip


def _history(changes: SnapshotChanges, version: Column) -> DataFrame:
    """The rows to write: those that end at this version, those that start at it, and those that only change."""
    columns = changes.columns
    removed, new = F.col(_COUNT).isNull(), F.col(_IS_OLD).isNull()

    def row(values: str, start: Column, end: Column) -> Column:
        kind = columns.sequence_type
        return F.struct(
            F.col(values).alias(ROW), start.cast(kind).alias(START_AT), end.cast(kind).alias(END_AT)
        )

    nothing = F.lit(None)
    ends = F.when(~new & (removed | F.col(_MOVED)), row(_OLD, F.col(START_AT), version))
    begins = F.when(new | (~removed & F.col(_MOVED)), row(ROW, version, nothing))
    amended = F.when(~new & ~removed & ~F.col(_MOVED), row(ROW, F.col(START_AT), nothing))
    parts = changes.rows.select(
        *columns.key_columns, F.explode(F.array_compact(F.array(ends, begins, amended))).alias("part")
    ).select(*columns.key_columns, "part.*", F.lit(False).alias(REMOVED))
    return flat(parts, columns, (START_AT, END_AT))


def _check_columns(columns: ChangeColumns, target: DeltaTable, where: object) -> None:
    known_columns = {name.lower() for name in (*columns.names, START_AT, END_AT)}
    missing = [name for name in target.toDF().columns if name.lower() not in known_columns]
    if missing:
        raise FlowFailed(
            f"A snapshot does not have the column {missing[0]!r}, which the table has: all its values would be lost.",
            where=where,
            remedy=f'Add it, if only as NULL: F.lit(None).alias("{missing[0]}"); or rebuild the table with --full-refresh.',
        )


def _twice(rows: DataFrame, columns: ChangeColumns, where: object) -> DuplicateKey:
    sample = rows.where(F.col(_COUNT) > 1).select(*columns.key_columns).first()
    key = ", ".join(f"{name} = {value!r}" for name, value in (sample.asDict() if sample else {}).items())
    return DuplicateKey(
        f"A snapshot has more than one row of the key {key}; nothing of it was written.",
        where=where,
        remedy="Give each key one row, or name more columns as keys.",
    )


def _no_key(columns: ChangeColumns) -> Column:
    return reduce(Column.__or__, (column.isNull() for column in columns.key_columns))
