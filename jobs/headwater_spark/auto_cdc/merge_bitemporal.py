"""Bitemporal: the history of a key, as it was known at each moment at which something about the key became known.

An event has two sequences: since when it is true (``sequence_by``), and since when it is known (``system_sequence_by``). What is
believed at a moment is the type 2 history of the events that are known by then; of two events with one sequence, the one that
became known later counts. A row of the target is a row of such a history, with the longest time for which it was believed.

All events are remembered beside the target: a late one may change what was believed at any later moment. Of the batch's keys the
beliefs are computed again from the first moment that the batch can change; the rows believed before it are the target's own.

Decision 0247.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headwater_spark.auto_cdc.change_columns import (
    DELETE,
    END_AT,
    OWN,
    SEQUENCE,
    START_AT,
    SYSTEM,
    SYSTEM_END_AT,
    SYSTEM_START_AT,
    ChangeColumns,
)
from headwater_spark.auto_cdc.change_events import (
    ROW,
    ChangeBatch,
    comparable,
    fitted,
    flat,
    row_of_table,
    row_type,
)
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merge_history import FILLED, runs_and_deletes
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.rows import Rows, on_driver, reusable
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import REMOVED, SideTable
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.names import quoted

_ENDS = (START_AT, END_AT, SYSTEM_START_AT, SYSTEM_END_AT)
# The moments of a key at which something became known, numbered from the first one that is computed again; 0 is the one before.
_MOMENT, _SINCE, _BEGAN, _ISLAND, _FORM, _LAST = (
    f"{OWN}{name}" for name in ("moment", "since", "began", "island", "form", "last")
)


def merge_bitemporal(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a bitemporal target."""
    columns, local = batch.columns, batch.local is not None
    with ExitStack() as stack:

        def kept(frame: DataFrame) -> Rows:
            return stack.enter_context(reusable(frame, local=local))

        known = _known(batch, side)
        events = kept(_events(batch, known)).frame
        changes = kept(_changes(events, known, columns))
        since = kept(changes.frame.groupBy(*columns.key_columns).agg(F.min(SYSTEM).alias(_SINCE))).frame
        affected = kept(_affected(target.rows_about(batch).frame, since, batch)).frame
        moments = kept(_moments(events, since, columns)).frame
        source = _source(_believed(events, affected, moments, columns), affected, columns)
        # Not cached: a merge recomputes every cache that depends on its target.
        rows = on_driver(source) if local else Rows(source.localCheckpoint())
        transaction = with_counts(transaction, batch, upserts=None, tombstones=0)
        if changes.table.num_rows if changes.is_local else not changes.frame.isEmpty():
            # Beside an event with the same sequences, if there is one: whoever reads them takes the winner.
            side.append(changes.frame, transaction)
    _merge(batch, rows.frame, target, transaction)


def _known(batch: ChangeBatch, side: SideTable) -> DataFrame | None:
    """The events of the batch's keys that are remembered."""
    rows, columns = side.rows_about(batch), batch.columns
    if rows is None:
        return None
    by = columns.key_columns
    keys = F.broadcast(batch.events.select(*by).distinct())
    row = fitted(F.col(ROW), rows.schema[ROW].dataType, row_type(columns))
    about = rows.alias("k").where(batch.key_filter("k")).join(keys, list(columns.keys), "left_semi")
    return about.select(*by, SEQUENCE, SYSTEM, DELETE, row.alias(ROW))


def _events(batch: ChangeBatch, known: DataFrame | None) -> DataFrame:
    """All events of the batch's keys, one for each pair of sequences."""
    columns, by = batch.columns, batch.columns.key_columns
    new = batch.events.select(*by, SEQUENCE, SYSTEM, DELETE, ROW)
    every = new if known is None else new.unionByName(known)
    rank = F.struct(DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(DELETE, ROW), rank).alias("winner")
    return every.groupBy(*by, SEQUENCE, SYSTEM).agg(winner).select(*by, SEQUENCE, SYSTEM, "winner.*")


def _changes(events: DataFrame, known: DataFrame | None, columns: ChangeColumns) -> DataFrame:
    """The events that are not remembered as they are."""
    if known is None:
        return events
    kind, identity = row_type(columns), [*columns.keys, SEQUENCE, SYSTEM]
    same = F.col(f"e.{DELETE}") == F.col(f"k.{DELETE}")
    same = same & comparable(F.col(f"e.{ROW}"), kind).eqNullSafe(comparable(F.col(f"k.{ROW}"), kind))
    for name in identity:
        same = same & (F.col(quoted("e", name)) == F.col(quoted("k", name)))
    return events.alias("e").join(known.alias("k"), same, "left_anti")


def _affected(rows: DataFrame, since: DataFrame, batch: ChangeBatch) -> DataFrame:
    """The target's rows that were believed when the first change became known, or later."""
    columns = batch.columns
    about = rows.alias("t").where(batch.key_filter("t")).join(since, list(columns.keys))
    may_change = F.col(SYSTEM_END_AT).isNull() | (F.col(SYSTEM_END_AT) >= F.col(_SINCE))
    row = row_of_table(rows.schema, columns).alias(ROW)
    return about.where(may_change).select(*columns.key_columns, row, *_ENDS, _SINCE)


def _believed(
    events: DataFrame, affected: DataFrame, moments: DataFrame, columns: ChangeColumns
) -> DataFrame:
    """The rows of the changed keys, believed when the first change became known or later, with the time of that."""
    keys, by = list(columns.keys), columns.key_columns
    known = events.alias("e").join(moments.alias("m"), keys).where(F.col(SYSTEM) <= F.col(_BEGAN))
    rank = F.struct(SYSTEM, DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(DELETE, ROW), rank).alias("winner")
    histories = known.groupBy(*by, _MOMENT, SEQUENCE).agg(winner).select(*by, _MOMENT, SEQUENCE, "winner.*")
    runs = runs_and_deletes(histories, replace(columns, keys=(*keys, _MOMENT))).where(~F.col(DELETE))
    now = runs.join(moments, [*keys, _MOMENT]).select(
        *by, _MOMENT, _BEGAN, START_AT, END_AT, F.col(FILLED).alias(ROW)
    )
    before = affected.where(F.col(SYSTEM_START_AT) < F.col(_SINCE)).select(
        *by, F.lit(0).alias(_MOMENT), F.col(SYSTEM_START_AT).alias(_BEGAN), START_AT, END_AT, ROW
    )
    # In this order: columns of a union are those of its first part, and a merge takes none that are its target's own.
    return _spans(now.unionByName(before), moments, columns)


def _moments(events: DataFrame, since: DataFrame, columns: ChangeColumns) -> DataFrame:
    by = columns.key_columns
    times = events.select(*by, F.col(SYSTEM).alias(_BEGAN)).distinct().join(since, list(columns.keys))
    order = Window.partitionBy(*by).orderBy(_BEGAN)
    return times.where(F.col(_BEGAN) >= F.col(_SINCE)).select(
        *by, _BEGAN, F.row_number().over(order).alias(_MOMENT)
    )


def _spans(rows: DataFrame, moments: DataFrame, columns: ChangeColumns) -> DataFrame:
    """Rows that are believed at moments after each other, as one row from the first to the moment after the last."""
    keys, by = list(columns.keys), columns.key_columns
    same: list[Column | str] = [*by, START_AT, END_AT, _FORM]
    rows = rows.withColumn(_FORM, comparable(F.col(ROW), row_type(columns)))
    order = Window.partitionBy(*same).orderBy(_MOMENT)
    numbered = rows.withColumn(_ISLAND, F.col(_MOMENT) - F.row_number().over(order))
    spans = numbered.groupBy(*same, _ISLAND).agg(
        F.min_by(_BEGAN, _MOMENT).alias(SYSTEM_START_AT), F.max(_MOMENT).alias(_LAST), F.first(ROW).alias(ROW)
    )
    following = moments.select(*by, (F.col(_MOMENT) - 1).alias(_LAST), F.col(_BEGAN).alias(SYSTEM_END_AT))
    return spans.join(following, [*keys, _LAST], "left").select(*by, ROW, *_ENDS)


def _source(rows: DataFrame, affected: DataFrame, columns: ChangeColumns) -> DataFrame:
    """The rows to write: those that differ from what the target has."""
    kind, identity = row_type(columns), [*columns.keys, START_AT, SYSTEM_START_AT]
    names = [F.col(quoted(name)) for name in identity]
    old = affected.select(*names, F.struct(ROW, END_AT, SYSTEM_END_AT).alias("was"), F.lit(True).alias("old"))
    both = rows.withColumn("new", F.lit(True)).join(old, identity, "full_outer")
    same = comparable(F.col(ROW), kind).eqNullSafe(comparable(F.col(f"was.{ROW}"), kind))
    for name in (END_AT, SYSTEM_END_AT):
        same = same & F.col(name).eqNullSafe(F.col(f"was.{name}"))
    differs = F.col("new").isNull() | F.col("old").isNull() | ~same
    source = both.where(differs).withColumn(REMOVED, F.col("new").isNull())
    return flat(source.select(*names, END_AT, SYSTEM_END_AT, ROW, REMOVED), columns, _ENDS)


def _merge(batch: ChangeBatch, source: DataFrame, target: OpenTarget, transaction: BatchTransaction) -> None:
    columns = batch.columns
    on = batch.key_filter("t")
    for name in (*columns.keys, START_AT, SYSTEM_START_AT):
        on = on & (F.col(quoted("t", name)) == F.col(quoted("s", name)))
    values = merged_values((*columns.names, *_ENDS), source, target.rows.schema)
    merge = (
        target.table.alias("t").merge(source.alias("s"), on).withSchemaEvolution()
        .whenMatchedDelete(F.col(f"s.{REMOVED}"))
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~F.col(f"s.{REMOVED}"), values=values)
    )  # fmt: skip
    with committing(source.sparkSession, transaction, fixed_source=True):
        merge.execute()
