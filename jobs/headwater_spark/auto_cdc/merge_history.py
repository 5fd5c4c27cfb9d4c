"""Type 2: one row per run of events of a key that agree in the tracked columns, with its start and its end.

A batch's events are put among those that the target shows and those that the side table remembers, the runs are made
anew for the batch's keys from the first moment that the batch can change, and only rows that differ are written.

The target shows an event for each row that is a run by itself, and a delete for each row that ends where no other begins.
The side table has the rest: events of runs of two and more, events that say nothing of some columns, and deletes that end
no row.
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
    is_named,
    quoted,
)
from headwater_spark.auto_cdc.change_events import (
    ROW,
    SELECTED,
    ChangeBatch,
    comparable,
    fitted,
    flat,
    row_held,
    row_type,
    says_all,
)
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.door import try_on_driver
from headwater_spark.auto_cdc.on_driver.look_up import FoundRows
from headwater_spark.auto_cdc.on_driver.rows import Held, held, local_frame, on_driver
from headwater_spark.auto_cdc.on_driver.settle import in_form, settle_history
from headwater_spark.auto_cdc.on_driver.verdict import Decided, Declined, engine
from headwater_spark.auto_cdc.open_target import AboutKeys, OpenTarget
from headwater_spark.auto_cdc.side_table import GONE, SideTable
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.schemas import stored_schema

# Every remembered event may be forgotten in time: what is lost is only how far back late events can be placed.
EXPIRES = "true"
_RUN, _STARTS, _FILLED, _EVENTS, _SINCE = (
    f"{OWN}{n}" for n in ("run", "starts", "filled", "events", "since")
)


def merge_history(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a type 2 target."""
    identity = [*batch.columns.keys, START_AT]

    def decide(found: FoundRows) -> Decided:
        return _settled(batch, target, found, side, transaction)

    declined = try_on_driver(batch, target, identity, decide)
    if not isinstance(declined, Declined):
        return
    if declined.decided is None:
        source, transaction = _decide(batch, declined.about or target.about(batch), side, transaction)
    else:
        changes, transaction = declined.decided.changes, declined.decided.transaction
        kinds = stored_schema(target.rows.schema).add(GONE, BooleanType())
        source = Held(local_frame(side.spark, changes, kinds), changes)
    _merge(batch, source, target, transaction.with_metadata(**engine(declined)))


def _settled(
    batch: ChangeBatch, target: OpenTarget, found: FoundRows, side: SideTable, transaction: BatchTransaction
) -> Decided:
    """The changes that a batch on the driver makes: Spark decides what is not plain."""
    import pyarrow as pa

    schema, about = target.rows.schema, AboutKeys(target.rows, found)
    remembered = side.found(batch)
    settled = None
    if remembered is not None:
        settled = settle_history(batch.local, batch.columns, found, remembered, schema)
    if settled is None:
        source, transaction = _decide(batch, about, side, transaction)
        return Decided(in_form(source.table, schema), transaction)
    if settled.left.num_rows == 0:
        return Decided(settled.changes, with_counts(transaction, batch, upserts=None, tombstones=0))
    source, transaction = _decide(batch.only(settled.left), about, side, transaction)
    return Decided(pa.concat_tables([settled.changes, in_form(source.table, schema)]), transaction)


def _decide(
    batch: ChangeBatch, about: AboutKeys, side: SideTable, transaction: BatchTransaction
) -> tuple[Held, BatchTransaction]:
    """The rows to write, after what is to be remembered has been."""
    columns, local = batch.columns, batch.local is not None
    with ExitStack() as kept:
        shown = kept.enter_context(held(_shown(batch, about.frame), local=local)).frame
        known = _known(batch, side.about(batch), shown)
        groups = kept.enter_context(held(_groups(_events(batch, shown, known), columns), local=local)).frame
        transaction = _remember(batch, groups, known, side, transaction)
        source = _source(batch, groups, shown)
        # Not cached: a merge would read anew whatever is cached and has to do with its target.
        return on_driver(source) if local else Held(source.localCheckpoint()), transaction


def _shown(batch: ChangeBatch, rows: DataFrame) -> DataFrame:
    """The target's rows about the batch's keys that the batch can change: what ended before it stays as it is."""
    columns = batch.columns
    touched = rows.alias("t").where(batch.prunes("t") & _can_change(batch))
    asked = F.broadcast(batch.events.select(*_keys(columns)).distinct())
    return touched.join(asked, list(columns.keys), "left_semi").select(
        *_keys(columns), row_held(rows.schema, columns).alias(ROW), START_AT, END_AT
    )


def _can_change(batch: ChangeBatch) -> Column:
    """What ended before the batch's first event stays, unless later rows take values from it."""
    end = F.col(f"t.{END_AT}")
    return F.lit(True) if batch.columns.by_column else end.isNull() | (end >= batch.first_sequence)


def _known(batch: ChangeBatch, remembered: DataFrame | None, shown: DataFrame) -> DataFrame | None:
    """What is remembered about the batch's keys, from the first row on that the batch can change."""
    if remembered is None:
        return None
    columns = batch.columns
    keys = list(columns.keys)
    since = batch.events.groupBy(*_keys(columns)).agg(F.min(SEQUENCE).alias("a"))
    since = since.join(shown.groupBy(*_keys(columns)).agg(F.min(START_AT).alias("b")), keys, "left")
    since = F.broadcast(since.select(*_keys(columns), F.least("a", "b").alias(_SINCE)))
    row = fitted(F.col(ROW), remembered.schema[ROW].dataType, row_type(columns))
    about = remembered.alias("k").where(batch.prunes("k")).join(since, keys)
    return about.where(F.col(SEQUENCE) >= F.col(_SINCE)).select(
        *_keys(columns), SEQUENCE, DELETE, row.alias(ROW)
    )


def _events(batch: ChangeBatch, shown: DataFrame, known: DataFrame | None) -> DataFrame:
    """All events of the batch's keys, one per sequence: new ones, remembered ones, and those that rows stand for."""
    columns, keys = batch.columns, list(batch.columns.keys)
    started = shown.select(*_keys(columns), F.col(START_AT).alias(SEQUENCE), F.lit(False).alias(DELETE), ROW)
    ended = shown.where(F.col(END_AT).isNotNull()).select(*_keys(columns), F.col(END_AT).alias(SEQUENCE))
    ended = ended.join(started.select(*_keys(columns), SEQUENCE), [*keys, SEQUENCE], "left_anti")
    nothing = F.lit(None).cast(row_type(columns)).alias(ROW)
    deletes = ended.select(*_keys(columns), SEQUENCE, F.lit(True).alias(DELETE), nothing)
    if known is not None:
        # A remembered event is told as it came; the row has the values of the last event of its run.
        started = started.join(known.select(*_keys(columns), SEQUENCE), [*keys, SEQUENCE], "left_anti")
        deletes = deletes.unionByName(known)
    every = batch.events.unionByName(started).unionByName(deletes)
    every = every.coalesce(1) if batch.local is not None else every
    rank = F.struct(DELETE, comparable(F.col(ROW), row_type(columns)))
    winner = F.max_by(F.struct(DELETE, ROW), rank).alias("winner")
    return every.groupBy(*_keys(columns), SEQUENCE).agg(winner).select(*_keys(columns), SEQUENCE, "winner.*")


def _groups(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    """The runs and the deletes: start, end, the run's values, its events; ``__hw_delete`` tells which it is."""
    order = Window.partitionBy(*_keys(columns)).orderBy(SEQUENCE)
    filled = _filled(events, columns)
    tracked = F.struct(*(comparable(F.col(quoted(_FILLED, f.name)), f.dataType).alias(f.name)
                         for f in columns.fields if f.name in columns.tracked)) if columns.tracked else F.lit(0)  # fmt: skip
    before, was_deleted = F.lag(tracked).over(order), F.lag(DELETE).over(order)
    differs = was_deleted.isNull() | was_deleted | ~tracked.eqNullSafe(before)
    marked = filled.withColumn(_STARTS, F.col(DELETE) | differs)
    numbered = marked.withColumn(_RUN, F.sum(F.col(_STARTS).cast("int")).over(order))
    runs = numbered.groupBy(*_keys(columns), _RUN).agg(
        F.min(SEQUENCE).alias(START_AT),
        F.first(DELETE).alias(DELETE),
        F.max_by(_FILLED, SEQUENCE).alias(_FILLED),
        F.collect_list(F.struct(SEQUENCE, ROW)).alias(_EVENTS),
    )
    following = Window.partitionBy(*_keys(columns)).orderBy(_RUN)
    return runs.withColumns(
        {END_AT: F.lead(START_AT).over(following), f"{OWN}ends_run": ~F.lag(DELETE).over(following)}
    )


def _filled(events: DataFrame, columns: ChangeColumns) -> DataFrame:
    """Events with what they say nothing of taken from the event before, back to the last delete."""
    if not columns.by_column:
        return events.withColumn(_FILLED, F.col(ROW))
    order = Window.partitionBy(*_keys(columns)).orderBy(SEQUENCE)
    life = f"{OWN}life"
    lives = events.withColumn(life, F.sum(F.col(DELETE).cast("int")).over(order))
    within = Window.partitionBy(*_keys(columns), life).orderBy(SEQUENCE)

    def inherited(value: Column, kind: DataType) -> Column:
        if isinstance(kind, StructType):
            parts = [inherited(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
            some = F.last(F.when(value.isNotNull(), F.lit(True)), ignorenulls=True).over(within)
            return F.when(some, F.struct(*parts))
        return F.last(value, ignorenulls=True).over(within)

    def named(value: Column, name: str) -> Column:
        speaks = ~F.col(DELETE) & is_named(name, F.col(quoted(ROW, SELECTED)))
        # A NULL that was named is a value, too.
        told = F.when(speaks, F.struct(value.alias("value")))
        return F.last(told, ignorenulls=True).over(within).getField("value")

    fields = []
    for field in columns.fields:
        value = F.col(quoted(ROW, field.name))
        # The delete that a life begins with says nothing of columns.
        value = F.when(~F.col(DELETE), value)
        if field.name in columns.ignored:
            value = inherited(value, field.dataType)
        elif columns.rows_tell and field.name not in columns.keys:
            value = named(value, field.name)
        fields.append(value.alias(field.name))
    return lives.withColumn(_FILLED, F.struct(*fields, *says_all(columns))).drop(life)


def _remember(
    batch: ChangeBatch,
    groups: DataFrame,
    known: DataFrame | None,
    side: SideTable,
    transaction: BatchTransaction,
) -> BatchTransaction:
    columns = batch.columns
    kind = row_type(columns)
    single = F.size(_EVENTS) == 1
    told = comparable(F.col(_EVENTS)[0][ROW], kind).eqNullSafe(comparable(F.col(_FILLED), kind))
    runs = groups.where(~F.col(DELETE) & ~(single & told)).select(
        *_keys(columns), F.explode(_EVENTS).alias("event")
    ).select(*_keys(columns), f"event.{SEQUENCE}", F.lit(False).alias(DELETE), f"event.{ROW}")  # fmt: skip
    # A delete that ends a row is told by that row.
    lone = groups.where(F.col(DELETE) & ~F.coalesce(F.col(f"{OWN}ends_run"), F.lit(False))).select(
        *_keys(columns), F.col(START_AT).alias(SEQUENCE), DELETE, F.lit(None).cast(kind).alias(ROW)
    )
    wanted = runs.unionByName(lone)
    wanted = wanted.coalesce(1) if batch.local is not None else wanted
    identity = [*columns.keys, SEQUENCE]
    if known is None:
        changes = wanted.withColumn(GONE, F.lit(False))
    else:
        same = [*identity, DELETE]
        new = wanted.join(known.select(*(F.col(quoted(n)) for n in same)), same, "left_anti")
        changed = wanted.alias("w").join(known.alias("k"), same).where(
            ~comparable(F.col(f"w.{ROW}"), kind).eqNullSafe(comparable(F.col(f"k.{ROW}"), kind))
        ).select(*(F.col(quoted(n)) for n in same), F.col(f"w.{ROW}").alias(ROW))  # fmt: skip
        gone = known.join(wanted.select(*(F.col(quoted(n)) for n in identity)), identity, "left_anti")
        changes = (
            new.unionByName(changed)
            .withColumn(GONE, F.lit(False))
            .unionByName(gone.withColumn(GONE, F.lit(True)))
        )
    with held(changes, local=batch.local is not None) as kept:
        count, tombstones = _counts(kept)
        # No event is ignored for being late: it finds its place in the history.
        transaction = with_counts(transaction, batch, upserts=None, tombstones=tombstones)
        if count:
            side.merge(kept, identity, transaction, batch.prunes("t"))
    return transaction


def _counts(changes: Held) -> tuple[int, int]:
    """How many rows the side table gains, loses or changes, and how many tombstones it gains."""
    if changes.is_local:
        deletes, gone = (changes.table[name].to_pylist() for name in (DELETE, GONE))
        tombstones = sum(delete and not went for delete, went in zip(deletes, gone, strict=True))
        return changes.table.num_rows, tombstones
    counts = [F.count(F.lit(1)), F.count_if(F.col(DELETE) & ~F.col(GONE))]
    count, tombstones = changes.frame.agg(*counts).collect()[0]
    return count, tombstones


def _source(batch: ChangeBatch, groups: DataFrame, shown: DataFrame) -> DataFrame:
    """The rows to write: those that differ from what the target shows."""
    columns, kind = batch.columns, row_type(batch.columns)
    wanted = groups.where(~F.col(DELETE)).select(*_keys(columns), F.col(_FILLED).alias(ROW), START_AT, END_AT)
    identity = [*columns.keys, START_AT]
    old = shown.select(
        *(F.col(quoted(n)) for n in identity), F.col(ROW).alias("old_row"), F.col(END_AT).alias("old_end"), F.lit(True).alias("old")
    )  # fmt: skip
    both = wanted.withColumn("new", F.lit(True)).join(old, identity, "full_outer")
    same = F.col(END_AT).eqNullSafe(F.col("old_end")) & comparable(F.col(ROW), kind).eqNullSafe(
        comparable(F.col("old_row"), kind)
    )
    differs = F.col("new").isNull() | F.col("old").isNull() | ~same
    source = both.where(differs).withColumn(GONE, F.col("new").isNull())
    return flat(
        source.select(*(F.col(quoted(n)) for n in identity), END_AT, ROW, GONE), columns, (START_AT, END_AT)
    )


def _merge(batch: ChangeBatch, source: Held, target: OpenTarget, transaction: BatchTransaction) -> None:
    columns = batch.columns
    on = batch.prunes("t") & _can_change(batch)
    for name in (*columns.keys, START_AT):
        on = on & (F.col(quoted("t", name)) == F.col(quoted("s", name)))
    values = merged_values((*columns.names, START_AT, END_AT), source.frame, target.rows.schema)
    merge = (
        target.table.alias("t").merge(source.frame.alias("s"), on).withSchemaEvolution()
        .whenMatchedDelete(F.col(f"s.{GONE}"))
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~F.col(f"s.{GONE}"), values=values)
    )  # fmt: skip
    with committing(source.frame.sparkSession, transaction, fixed_source=True):
        merge.execute()


def _keys(columns: ChangeColumns) -> list[Column]:
    return [F.col(quoted(key)) for key in columns.keys]
