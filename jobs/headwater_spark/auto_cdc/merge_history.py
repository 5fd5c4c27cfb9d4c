"""Type 2: one row per run of events of a key that agree in the tracked columns, with its start and its end.

A batch's events are sorted in among those that the target shows and those that the side table remembers. The runs of the
batch's keys are computed again from the first moment that the batch can change, and only rows that differ are written.

The target shows an event for each row that is a run by itself, and a delete for each row that ends where no other begins.
The side table has the rest: events of runs of two and more, events that do not set all columns, and deletes that end no row.
"""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructType

from headwater_spark.auto_cdc.change_columns import (
    DELETE,
    END_AT,
    OWN,
    SEQUENCE,
    START_AT,
    ChangeColumns,
    is_selected,
)
from headwater_spark.auto_cdc.change_events import (
    ROW,
    SELECTED,
    ChangeBatch,
    all_columns_marker,
    comparable,
    fitted,
    flat,
    row_of_table,
    row_type,
)
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.door import try_on_driver
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.rows import Rows, local_frame, on_driver, reusable
from headwater_spark.auto_cdc.on_driver.settle import in_form, settle_history
from headwater_spark.auto_cdc.on_driver.verdict import Decided, Declined, engine
from headwater_spark.auto_cdc.open_target import OpenTarget, TargetRows
from headwater_spark.auto_cdc.side_table import REMOVED, SideTable
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import stored_schema

# Every remembered event may expire: this only limits how late an event can still be placed.
EXPIRES = "true"
_RUN, _STARTS, FILLED, _EVENTS, _SINCE = (f"{OWN}{n}" for n in ("run", "starts", "filled", "events", "since"))


def merge_history(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a type 2 target."""
    identity = [*batch.columns.keys, START_AT]

    def decide(matches: MatchingRows) -> Decided:
        return _settled(batch, target, matches, side, transaction)

    declined = try_on_driver(batch, target, identity, decide)
    if not isinstance(declined, Declined):
        return
    if declined.decided is None:
        about = declined.target_rows or target.rows_about(batch)
        source, transaction = _decide(batch, about, side, transaction)
    else:
        changes, transaction = declined.decided.changes, declined.decided.transaction
        kinds = stored_schema(target.rows.schema).add(REMOVED, BooleanType())
        source = Rows(local_frame(side.spark, changes, kinds), changes)
    _merge(batch, source, target, transaction.with_metadata(**engine(declined)))


def _settled(
    batch: ChangeBatch,
    target: OpenTarget,
    matches: MatchingRows,
    side: SideTable,
    transaction: BatchTransaction,
) -> Decided:
    """The changes that a batch on the driver makes: Spark decides what Arrow can't."""
    import pyarrow as pa

    schema, about = target.rows.schema, TargetRows(target.rows, matches)
    remembered = side.remembered_keys(batch)
    settled = None
    if remembered is not None:
        settled = settle_history(batch.local, batch.columns, matches, remembered, schema)
    if settled is None:
        source, transaction = _decide(batch, about, side, transaction)
        return Decided(in_form(source.table, schema), transaction)
    if settled.undecided.num_rows == 0:
        return Decided(settled.changes, with_counts(transaction, batch, upserts=None, tombstones=0))
    source, transaction = _decide(batch.with_events(settled.undecided), about, side, transaction)
    return Decided(pa.concat_tables([settled.changes, in_form(source.table, schema)]), transaction)


def _decide(
    batch: ChangeBatch, about: TargetRows, side: SideTable, transaction: BatchTransaction
) -> tuple[Rows, BatchTransaction]:
    """The rows to write, once the side table has what must be remembered."""
    columns, local = batch.columns, batch.local is not None
    with ExitStack() as stack:
        affected = stack.enter_context(reusable(_affected_rows(batch, about.frame), local=local)).frame
        remembered = _side_events(batch, side.rows_about(batch), affected)
        groups = runs_and_deletes(_events(batch, affected, remembered), columns)
        groups = stack.enter_context(reusable(groups, local=local)).frame
        transaction = _remember(batch, groups, remembered, side, transaction)
        source = _source(batch, groups, affected)
        # Not cached: a merge recomputes every cache that depends on its target.
        return on_driver(source) if local else Rows(source.localCheckpoint()), transaction


def _affected_rows(batch: ChangeBatch, rows: DataFrame) -> DataFrame:
    """The target's rows about the batch's keys that the batch can change; rows that ended before it stay."""
    columns = batch.columns
    changeable = rows.alias("t").where(batch.key_filter("t") & _can_change(batch))
    batch_keys = F.broadcast(batch.events.select(*columns.key_columns).distinct())
    return changeable.join(batch_keys, list(columns.keys), "left_semi").select(
        *columns.key_columns, row_of_table(rows.schema, columns).alias(ROW), START_AT, END_AT
    )


def _can_change(batch: ChangeBatch) -> Column:
    """Rows that ended before the batch's first event stay, unless later rows take values from them."""
    end = F.col(f"t.{END_AT}")
    return F.lit(True) if batch.columns.by_column else end.isNull() | (end >= batch.first_sequence)


def _side_events(batch: ChangeBatch, side_rows: DataFrame | None, affected: DataFrame) -> DataFrame | None:
    """The remembered events of the batch's keys, from the first row on that the batch can change."""
    if side_rows is None:
        return None
    columns, by = batch.columns, batch.columns.key_columns
    keys = list(columns.keys)
    since = batch.events.groupBy(*by).agg(F.min(SEQUENCE).alias("a"))
    since = since.join(affected.groupBy(*by).agg(F.min(START_AT).alias("b")), keys, "left")
    since = F.broadcast(since.select(*by, F.least("a", "b").alias(_SINCE)))
    row = fitted(F.col(ROW), side_rows.schema[ROW].dataType, row_type(columns))
    about = side_rows.alias("k").where(batch.key_filter("k")).join(since, keys)
    return about.where(F.col(SEQUENCE) >= F.col(_SINCE)).select(*by, SEQUENCE, DELETE, row.alias(ROW))


def _events(batch: ChangeBatch, affected: DataFrame, remembered: DataFrame | None) -> DataFrame:
    """All events of the batch's keys, one per sequence: new ones, remembered ones, and those that rows represent."""
    columns, keys = batch.columns, list(batch.columns.keys)
    by = columns.key_columns
    started = affected.select(*by, F.col(START_AT).alias(SEQUENCE), F.lit(False).alias(DELETE), ROW)
    ended = affected.where(F.col(END_AT).isNotNull()).select(*by, F.col(END_AT).alias(SEQUENCE))
    ended = ended.join(started.select(*by, SEQUENCE), [*keys, SEQUENCE], "left_anti")
    nothing = F.lit(None).cast(row_type(columns)).alias(ROW)
    deletes = ended.select(*by, SEQUENCE, F.lit(True).alias(DELETE), nothing)
    if remembered is not None:
        # A remembered event is complete; the row has the values of the last event of its run.
        started = started.join(remembered.select(*by, SEQUENCE), [*keys, SEQUENCE], "left_anti")
        deletes = deletes.unionByName(remembered)
    every = batch.events.unionByName(started).unionByName(deletes)
    every = every.coalesce(1) if batch.local is not None else every
    rank = F.struct(DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(DELETE, ROW), rank).alias("winner")
    return every.groupBy(*by, SEQUENCE).agg(winner).select(*by, SEQUENCE, "winner.*")


def runs_and_deletes(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    """The runs and the deletes of events, one per key and sequence: start, end, the run's values (``FILLED``) and its events.

    ``__hw_delete`` is true for a delete.
    """
    by = columns.key_columns
    order = Window.partitionBy(*by).orderBy(SEQUENCE)
    filled = _filled(events, columns)
    tracked = F.struct(*(comparable(F.col(quoted(FILLED, f.name)), f.dataType).alias(f.name)
                         for f in columns.fields if f.name in columns.tracked)) if columns.tracked else F.lit(0)  # fmt: skip
    before, was_deleted = F.lag(tracked).over(order), F.lag(DELETE).over(order)
    differs = was_deleted.isNull() | was_deleted | ~tracked.eqNullSafe(before)
    marked = filled.withColumn(_STARTS, F.col(DELETE) | differs)
    numbered = marked.withColumn(_RUN, F.sum(F.col(_STARTS).cast("int")).over(order))
    runs = numbered.groupBy(*by, _RUN).agg(
        F.min(SEQUENCE).alias(START_AT),
        F.first(DELETE).alias(DELETE),
        F.max_by(FILLED, SEQUENCE).alias(FILLED),
        F.collect_list(F.struct(SEQUENCE, ROW)).alias(_EVENTS),
    )
    following = Window.partitionBy(*by).orderBy(_RUN)
    return runs.withColumns(
        {END_AT: F.lead(START_AT).over(following), f"{OWN}ends_run": ~F.lag(DELETE).over(following)}
    )


def _filled(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    """Events with the columns that they do not set filled from the events before, back to the last delete."""
    if not columns.by_column:
        return events.withColumn(FILLED, F.col(ROW))
    order = Window.partitionBy(*columns.key_columns).orderBy(SEQUENCE)
    life = f"{OWN}life"
    lives = events.withColumn(life, F.sum(F.col(DELETE).cast("int")).over(order))
    within = Window.partitionBy(*columns.key_columns, life).orderBy(SEQUENCE)

    def inherited(value: Column, kind: DataType) -> Column:
        if isinstance(kind, StructType):
            parts = [inherited(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
            some = F.last(F.when(value.isNotNull(), F.lit(True)), ignorenulls=True).over(within)
            return F.when(some, F.struct(*parts))
        return F.last(value, ignorenulls=True).over(within)

    def selected(value: Column, name: str) -> Column:
        speaks = ~F.col(DELETE) & is_selected(name, F.col(quoted(ROW, SELECTED)))
        # A NULL in a selected column is a value, too.
        stated = F.when(speaks, F.struct(value.alias("value")))
        return F.last(stated, ignorenulls=True).over(within).getField("value")

    fields = []
    for field in columns.fields:
        value = F.col(quoted(ROW, field.name))
        # The delete that a life begins with sets no columns.
        value = F.when(~F.col(DELETE), value)
        if field.name in columns.ignored:
            value = inherited(value, field.dataType)
        elif columns.rows_name_columns and field.name not in columns.keys:
            value = selected(value, field.name)
        fields.append(value.alias(field.name))
    return lives.withColumn(FILLED, F.struct(*fields, *all_columns_marker(columns))).drop(life)


def _remember(
    batch: ChangeBatch,
    groups: DataFrame,
    remembered: DataFrame | None,
    side: SideTable,
    transaction: BatchTransaction,
) -> BatchTransaction:
    columns, by = batch.columns, batch.columns.key_columns
    kind = row_type(columns)
    single = F.size(_EVENTS) == 1
    unchanged = comparable(F.col(_EVENTS)[0][ROW], kind).eqNullSafe(comparable(F.col(FILLED), kind))
    runs = groups.where(~F.col(DELETE) & ~(single & unchanged)).select(
        *by, F.explode(_EVENTS).alias("event")
    ).select(*by, f"event.{SEQUENCE}", F.lit(False).alias(DELETE), f"event.{ROW}")  # fmt: skip
    # A delete that ends a row is represented by that row.
    lone = groups.where(F.col(DELETE) & ~F.coalesce(F.col(f"{OWN}ends_run"), F.lit(False))).select(
        *by, F.col(START_AT).alias(SEQUENCE), DELETE, F.lit(None).cast(kind).alias(ROW)
    )
    events = runs.unionByName(lone)
    events = events.coalesce(1) if batch.local is not None else events
    identity = [*columns.keys, SEQUENCE]
    if remembered is None:
        changes = events.withColumn(REMOVED, F.lit(False))
    else:
        same = [*identity, DELETE]
        new = events.join(remembered.select(*(F.col(quoted(n)) for n in same)), same, "left_anti")
        changed = events.alias("w").join(remembered.alias("k"), same).where(
            ~comparable(F.col(f"w.{ROW}"), kind).eqNullSafe(comparable(F.col(f"k.{ROW}"), kind))
        ).select(*(F.col(quoted(n)) for n in same), F.col(f"w.{ROW}").alias(ROW))  # fmt: skip
        removed = remembered.join(events.select(*(F.col(quoted(n)) for n in identity)), identity, "left_anti")
        changes = (
            new.unionByName(changed)
            .withColumn(REMOVED, F.lit(False))
            .unionByName(removed.withColumn(REMOVED, F.lit(True)))
        )
    with reusable(changes, local=batch.local is not None) as side_changes:
        count, tombstones = _counts(side_changes)
        # No event is ignored for being late: it gets its place in the history.
        transaction = with_counts(transaction, batch, upserts=None, tombstones=tombstones)
        if count:
            side.merge(side_changes, identity, transaction, batch.key_filter("t"))
    return transaction


def _counts(changes: Rows) -> tuple[int, int]:
    """How many rows the side table gains, loses or changes, and how many tombstones it gains."""
    if changes.is_local:
        deletes, removed = (changes.table[name].to_pylist() for name in (DELETE, REMOVED))
        tombstones = sum(
            (delete, lost) == (True, False) for delete, lost in zip(deletes, removed, strict=True)
        )
        return changes.table.num_rows, tombstones
    counts = [F.count(F.lit(1)), F.count_if(F.col(DELETE) & ~F.col(REMOVED))]
    count, tombstones = changes.frame.agg(*counts).collect()[0]
    return count, tombstones


def _source(batch: ChangeBatch, groups: DataFrame, affected: DataFrame) -> DataFrame:
    """The rows to write: those that differ from what the target shows."""
    columns, kind = batch.columns, row_type(batch.columns)
    runs = groups.where(~F.col(DELETE)).select(
        *columns.key_columns, F.col(FILLED).alias(ROW), START_AT, END_AT
    )
    identity = [*columns.keys, START_AT]
    old = affected.select(
        *(F.col(quoted(n)) for n in identity), F.col(ROW).alias("old_row"), F.col(END_AT).alias("old_end"), F.lit(True).alias("old")
    )  # fmt: skip
    both = runs.withColumn("new", F.lit(True)).join(old, identity, "full_outer")
    same = F.col(END_AT).eqNullSafe(F.col("old_end")) & comparable(F.col(ROW), kind).eqNullSafe(
        comparable(F.col("old_row"), kind)
    )
    differs = F.col("new").isNull() | F.col("old").isNull() | ~same
    source = both.where(differs).withColumn(REMOVED, F.col("new").isNull())
    return flat(
        source.select(*(F.col(quoted(n)) for n in identity), END_AT, ROW, REMOVED),
        columns,
        (START_AT, END_AT),
    )


def _merge(batch: ChangeBatch, source: Rows, target: OpenTarget, transaction: BatchTransaction) -> None:
    columns = batch.columns
    on = batch.key_filter("t") & _can_change(batch)
    for name in (*columns.keys, START_AT):
        on = on & (F.col(quoted("t", name)) == F.col(quoted("s", name)))
    values = merged_values((*columns.names, START_AT, END_AT), source.frame, target.rows.schema)
    merge = (
        target.table.alias("t").merge(source.frame.alias("s"), on).withSchemaEvolution()
        .whenMatchedDelete(F.col(f"s.{REMOVED}"))
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~F.col(f"s.{REMOVED}"), values=values)
    )  # fmt: skip
    with committing(source.frame.sparkSession, transaction, fixed_source=True):
        merge.execute()
