"""Type 1: the row of each key as its greatest event left it.

Where the target keeps the sequence in a column, rows carry their own, and only deletes are remembered beside it. Else the
side table has the sequence of every key. It is only added to: of the rows of a key the greatest holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from headwater_spark.auto_cdc.change_columns import DELETE, OWN, SEQUENCE, ChangeColumns, quoted
from headwater_spark.auto_cdc.change_events import ChangeBatch, comparable, fitted, flat
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.door import try_on_driver
from headwater_spark.auto_cdc.on_driver.events import can_be_looked_at, split_by_keys
from headwater_spark.auto_cdc.on_driver.look_up import FoundRows, all_known
from headwater_spark.auto_cdc.on_driver.rows import Held, held, local_frame, on_driver
from headwater_spark.auto_cdc.on_driver.settle import in_form, settle_latest
from headwater_spark.auto_cdc.on_driver.verdict import Decided, Declined, engine
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import GONE, RECORDED_AT, SideTable
from headwater_spark.auto_cdc.truncates import about_no_key, last_truncate, truncate_row
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing

# In the side table: the last sequence of a key, and whether it was a delete. All keys NULL: the last truncate.
AT, DELETED = f"{OWN}at", f"{OWN}deleted"
_TIE, _CLEARED, _HERE = f"{OWN}tie", f"{OWN}cleared", f"{OWN}here"
EXPIRES = DELETED


def merge_latest(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a type 1 target."""
    remembered = side.found(batch) if batch.local is not None and can_be_looked_at(batch.columns) else None
    known = side.about(batch) if remembered is None else None
    cleared_at = last_truncate(batch, known, AT)
    with ExitStack() as kept:
        if remembered is None:
            live = kept.enter_context(_live(batch, known, cleared_at))
        else:
            live = _live_here(batch, side, remembered)
        remembered = _remembered(batch, live, side, cleared_at)
        transaction = with_counts(
            transaction, batch, upserts=batch.kept - batch.deletes, tombstones=_tombstones(batch, live)
        )
        if remembered is not None and remembered.is_local:
            side.append_local(remembered, transaction)
        elif remembered is not None:
            side.append(remembered.frame, transaction)

        def decide(found: FoundRows) -> Decided:
            return Decided(_settled(batch, live, target, found), transaction)

        declined = try_on_driver(batch, target, batch.columns.keys, decide)
        if isinstance(declined, Declined):
            transaction = transaction.with_metadata(**engine(declined))
            _merge(batch, live, known, target, transaction, cleared_at)


def _live_here(batch: ChangeBatch, side: SideTable, remembered: Any) -> Held:
    """The same as ``_live`` of a batch on the driver: Spark looks at events of remembered keys alone."""
    import pyarrow as pa

    new, others = split_by_keys(batch.local, batch.columns.keys, remembered)
    live = new.append_column(_TIE, pa.array([False] * new.num_rows, pa.bool_()))
    if others.num_rows:
        asking = batch.only(others)
        undecided = _undecided(asking, side.about(asking), None).select(*map(quoted, live.column_names))
        live = pa.concat_tables([live, on_driver(undecided).table.cast(live.schema)])
    return Held(local_frame(side.spark, live, batch.events.schema.add(_TIE, BooleanType())), live)


def _settled(batch: ChangeBatch, live: Held, target: OpenTarget, found: FoundRows) -> Any:
    """The changes that events on the driver make, as Arrow: Spark decides what Arrow does not."""
    import pyarrow as pa

    schema, spark = target.rows.schema, target.rows.sparkSession
    settled = settle_latest(live.table, batch.columns, found, _TIE, schema)
    left = live.table if settled is None else settled.left
    parts = [] if settled is None else [settled.changes]
    if left.num_rows:
        events = local_frame(spark, left, live.frame.schema)
        rows = local_frame(spark, found.rows, schema)
        parts.append(in_form(on_driver(_changes(batch, events, rows)).table, schema))
    return pa.concat_tables(parts)


def _changes(batch: ChangeBatch, events: DataFrame, rows: DataFrame) -> DataFrame:
    """What the merge would do with events and the target's rows about their keys."""
    columns = batch.columns
    same = [F.col(quoted("t", key)) == F.col(quoted("s", key)) for key in columns.keys]
    held = rows.withColumn(_HERE, F.lit(True)).alias("t")
    met = flat(events, columns).alias("s").join(held, _all(same), "left")
    absent = F.col(f"t.{_HERE}").isNull()
    changes = (absent & ~F.col(f"s.{DELETE}")) | (~absent & _newer(batch, rows.schema))
    values = [F.col(quoted("s", name)).alias(name) for name in columns.names]
    return met.where(changes).select(*values, F.col(f"s.{DELETE}").alias(GONE))


@contextmanager
def _live(batch: ChangeBatch, known: DataFrame | None, cleared_at: Column | None) -> Iterator[Held]:
    """The events that what is remembered does not outdate, to be read more than once."""
    if known is None and cleared_at is None:
        if batch.local is None:
            yield Held(batch.events.withColumn(_TIE, F.lit(False)))
            return
        import pyarrow as pa

        no_tie = pa.array([False] * batch.local.num_rows)
        table = batch.local.append_column(_TIE, no_tie)
        yield Held(batch.events.withColumn(_TIE, F.lit(False)), table)
        return
    with held(_undecided(batch, known, cleared_at), local=batch.local is not None) as live:
        yield live


def _tombstones(batch: ChangeBatch, live: Held) -> int:
    if batch.deletes == 0:
        return 0
    return sum(live.table[DELETE].to_pylist()) if live.is_local else live.frame.where(DELETE).count()


def compact(side: SideTable, columns: ChangeColumns) -> None:
    """Leave one row of each key in the side table, where it has grown."""
    known = side.read()
    if known is not None:
        side.compact(_greatest(known, list(columns.keys), RECORDED_AT))


def _greatest(known: DataFrame, keys: list[str], *also: str) -> DataFrame:
    """What holds of each key. At one sequence a delete is greater."""
    names = [F.col(quoted(key)) for key in keys]
    last = known.groupBy(*names).agg(F.max(F.struct(AT, DELETED, *also)).alias("last"))
    return last.select(*names, "last.*")


def _undecided(batch: ChangeBatch, known: DataFrame | None, cleared_at: Column | None) -> DataFrame:
    """The events that what is remembered does not outdate."""
    keys, events = list(batch.columns.keys), batch.events
    if cleared_at is not None:
        events = events.where(F.col(SEQUENCE) >= cleared_at)
    if known is None:
        return events.withColumn(_TIE, F.lit(False))
    asked = F.broadcast(events.select(*(F.col(quoted(key)) for key in keys)))
    about = known.alias("k").where(batch.prunes("k")).join(asked, keys, "left_semi")
    joined = events.join(_greatest(about, keys), keys, "left")
    tie = F.col(AT).isNotNull() & (F.col(SEQUENCE) == F.col(AT))
    newer = F.col(AT).isNull() | (F.col(SEQUENCE) > F.col(AT)) | (tie & ~F.col(DELETED))
    return joined.where(newer).withColumn(_TIE, tie & ~F.col(DELETE)).drop(AT, DELETED)


def _remembered(batch: ChangeBatch, live: Held, side: SideTable, cleared_at: Column | None) -> Held | None:
    """What the side table has to gain by the batch."""
    keys = list(batch.columns.keys)
    only_deletes = batch.columns.sequence_column is not None
    if only_deletes and batch.deletes == 0 and batch.cleared_at is None:
        return None
    rows = (live.frame.where(DELETE) if only_deletes else live.frame).select(
        *(F.col(quoted(key)) for key in keys),
        F.col(SEQUENCE).alias(AT),
        F.col(DELETE).alias(DELETED),
    )
    if batch.cleared_at is not None and cleared_at is not None:
        truncate = {AT: cleared_at, DELETED: F.lit(False)}
        return Held(rows.unionByName(truncate_row(side.spark, batch, truncate)))
    if not live.is_local:
        return Held(rows)
    table = live.table.filter(live.table[DELETE]) if only_deletes else live.table
    return Held(rows, table.select([*keys, SEQUENCE, DELETE]).rename_columns([*keys, AT, DELETED]))


def _merge(
    batch: ChangeBatch,
    live: Held,
    known: DataFrame | None,
    target: OpenTarget,
    transaction: BatchTransaction,
    cleared_at: Column | None,
) -> None:
    columns, events = batch.columns, live.frame
    source = events.withColumn(_CLEARED, F.lit(False))
    if batch.cleared_at is not None and columns.sequence_column is None and known is not None:
        source = source.unionByName(_cleared_rows(batch, events, known), allowMissingColumns=True)
    source = flat(source, columns)
    same = [F.col(quoted("t", key)) == F.col(quoted("s", key)) for key in columns.keys]
    clears = batch.cleared_at is not None
    on = _all(same) if clears else _all([*same, batch.prunes("t")])
    newer = _newer(batch, target.rows.schema)
    values = merged_values(columns.names, source, target.rows.schema)
    merge = target.table.alias("t").merge(source.alias("s"), on).withSchemaEvolution()
    merge = merge.whenMatchedDelete(F.col(f"s.{_CLEARED}") | (F.col(f"s.{DELETE}") & newer))
    merge = merge.whenMatchedUpdate(newer & ~F.col(f"s.{DELETE}"), set=values)
    if clears or not _only_known(live, target, columns.keys):
        merge = merge.whenNotMatchedInsert(~F.col(f"s.{DELETE}"), values=values)
    if clears and columns.sequence_column is not None and cleared_at is not None:
        outdated = F.col(quoted("t", columns.sequence_column)) < cleared_at
        merge = merge.whenNotMatchedBySourceDelete(outdated)
    # Rows that a truncate takes away are looked up when the source is read.
    with committing(events.sparkSession, transaction, fixed_source=live.is_local and not clears):
        merge.execute()


def _only_known(live: Held, target: OpenTarget, keys: tuple[str, ...]) -> bool:
    """Whether the batch can insert nothing: Delta then shuffles none of the target's rows.

    A row that something else deletes in this moment stays deleted, as if that had come after the batch.
    """
    from pyarrow import compute

    if not live.is_local:
        return False
    upserts = live.table.filter(compute.invert(live.table[DELETE]))
    return all_known(target.path, keys, upserts)


def _cleared_rows(batch: ChangeBatch, events: DataFrame, known: DataFrame) -> DataFrame:
    """The keys that a truncate takes away: those whose last event is older, and that no event of the batch is about."""
    keys = list(batch.columns.keys)
    older = _greatest(known.where(~about_no_key(batch.columns.keys)), keys).where(~F.col(DELETED))
    assert batch.cleared_at is not None
    older = older.where(F.col(AT) < batch.cleared_at)
    gone = older.join(events.select(*(F.col(quoted(key)) for key in keys)), keys, "left_anti")
    return gone.select(
        *(F.col(quoted(key)) for key in keys), F.lit(True).alias(DELETE), F.lit(True).alias(_CLEARED)
    )


def _newer(batch: ChangeBatch, held: StructType) -> Column:
    """Whether an event outdates the row that the target has."""
    columns = batch.columns
    greater = _greater(batch, held)
    if columns.sequence_column is None:
        return ~F.col(f"s.{_TIE}") | greater
    first = ~F.col(f"s.{_TIE}") | greater
    if columns.sequence_column not in held.names:  # kept from now on; what came before is in the side table
        return first
    at, row_at = F.col(f"s.{SEQUENCE}"), F.col(quoted("t", columns.sequence_column))
    # A row without a sequence was written by someone else, or before the table kept it: every event left is newer.
    return (row_at.isNull() & first) | (at > row_at) | ((at == row_at) & (F.col(f"s.{DELETE}") | greater))


def _greater(batch: ChangeBatch, held: StructType) -> Column:
    new, old = [], []
    for field in batch.columns.fields:
        if (
            field.name == batch.columns.sequence_column
        ):  # equal where this is asked, and NULL in rows from before it was kept
            continue
        # A column that the table is about to gain is NULL in all of its rows.
        known = field.name in held.names
        value = F.col(quoted("t", field.name)) if known else F.lit(None)
        value = fitted(value, held[field.name].dataType if known else field.dataType, field.dataType)
        new.append(comparable(F.col(quoted("s", field.name)), field.dataType))
        old.append(comparable(value, field.dataType))
    return F.struct(*new) > F.struct(*old)


def _all(conditions: list[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
