"""Type 1: the row of each key as its last event left it.

Where the target keeps the sequence in a column, the side table has deletes only; else it has the sequence of every key. It is
append-only: the greatest row of a key counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from headwater_spark.auto_cdc.change_columns import DELETE, OWN, SEQUENCE, ChangeColumns
from headwater_spark.auto_cdc.change_events import ChangeBatch, comparable, fitted, flat
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.door import try_on_driver
from headwater_spark.auto_cdc.on_driver.events import arrow_can_reduce, split_by_keys
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows, has_all_keys
from headwater_spark.auto_cdc.on_driver.rows import Rows, local_frame, on_driver, reusable
from headwater_spark.auto_cdc.on_driver.settle import in_form, settle_latest
from headwater_spark.auto_cdc.on_driver.verdict import Decided, Declined, engine
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import RECORDED_AT, REMOVED, SideTable
from headwater_spark.auto_cdc.truncates import has_no_key, last_truncate, truncate_row
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.names import quoted

# In the side table: the last sequence of a key, and whether it was a delete. All keys NULL: the last truncate.
AT, DELETED = f"{OWN}at", f"{OWN}deleted"
_TIE, _CLEARED, _IS_ROW = f"{OWN}tie", f"{OWN}cleared", f"{OWN}is_row"
EXPIRES = DELETED


def merge_latest(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a type 1 target."""
    known_keys = (
        side.remembered_keys(batch) if batch.local is not None and arrow_can_reduce(batch.columns) else None
    )
    remembered = side.rows_about(batch) if known_keys is None else None
    cleared_at = last_truncate(batch, remembered, AT)
    with ExitStack() as stack:
        if known_keys is None:
            live = stack.enter_context(_live(batch, remembered, cleared_at))
        else:
            live = _live_on_driver(batch, side, known_keys)
        known_keys = _rows_to_remember(batch, live, side, cleared_at)
        transaction = with_counts(
            transaction, batch, upserts=batch.remaining - batch.deletes, tombstones=_tombstones(batch, live)
        )
        if known_keys is not None and known_keys.is_local:
            side.append_local(known_keys, transaction)
        elif known_keys is not None:
            side.append(known_keys.frame, transaction)

        def decide(matches: MatchingRows) -> Decided:
            return Decided(_settled(batch, live, target, matches), transaction)

        declined = try_on_driver(batch, target, batch.columns.keys, decide)
        if isinstance(declined, Declined):
            transaction = transaction.with_metadata(**engine(declined))
            _merge(batch, live, remembered, target, transaction, cleared_at)


def _live_on_driver(batch: ChangeBatch, side: SideTable, side_keys: Any) -> Rows:
    """As ``_live``, for a batch on the driver: Spark handles only events of remembered keys."""
    import pyarrow as pa

    new, known = split_by_keys(batch.local, batch.columns.keys, side_keys)
    live = new.append_column(_TIE, pa.array([False] * new.num_rows, pa.bool_()))
    if known.num_rows:
        known_batch = batch.with_events(known)
        current = _current(known_batch, side.rows_about(known_batch), None).select(
            *map(quoted, live.column_names)
        )
        live = pa.concat_tables([live, on_driver(current).table.cast(live.schema)])
    return Rows(local_frame(side.spark, live, batch.events.schema.add(_TIE, BooleanType())), live)


def _settled(batch: ChangeBatch, live: Rows, target: OpenTarget, matches: MatchingRows) -> Any:
    """The changes that events on the driver make, as Arrow: Spark decides what Arrow can't."""
    import pyarrow as pa

    schema, spark = target.rows.schema, target.rows.sparkSession
    settled = settle_latest(live.table, batch.columns, matches, _TIE, schema)
    undecided = live.table if settled is None else settled.undecided
    parts = [] if settled is None else [settled.changes]
    if undecided.num_rows:
        events = local_frame(spark, undecided, live.frame.schema)
        rows = local_frame(spark, matches.rows, schema)
        parts.append(in_form(on_driver(_changes(batch, events, rows)).table, schema))
    return pa.concat_tables(parts)


def _changes(batch: ChangeBatch, events: DataFrame, rows: DataFrame) -> DataFrame:
    """What MERGE would do with events and the target's rows about their keys."""
    columns = batch.columns
    same = [F.col(quoted("t", key)) == F.col(quoted("s", key)) for key in columns.keys]
    current = rows.withColumn(_IS_ROW, F.lit(True)).alias("t")
    joined = flat(events, columns).alias("s").join(current, reduce(Column.__and__, same), "left")
    absent = F.col(f"t.{_IS_ROW}").isNull()
    changes = (absent & ~F.col(f"s.{DELETE}")) | (~absent & _newer(batch, rows.schema))
    values = [F.col(quoted("s", name)).alias(name) for name in columns.names]
    return joined.where(changes).select(*values, F.col(f"s.{DELETE}").alias(REMOVED))


@contextmanager
def _live(batch: ChangeBatch, remembered: DataFrame | None, cleared_at: Column | None) -> Iterator[Rows]:
    """The events that are not older than what is remembered, to be read more than once."""
    if remembered is None and cleared_at is None:
        if batch.local is None:
            yield Rows(batch.events.withColumn(_TIE, F.lit(False)))
            return
        import pyarrow as pa

        no_tie = pa.array([False] * batch.local.num_rows)
        table = batch.local.append_column(_TIE, no_tie)
        yield Rows(batch.events.withColumn(_TIE, F.lit(False)), table)
        return
    with reusable(_current(batch, remembered, cleared_at), local=batch.local is not None) as live:
        yield live


def _tombstones(batch: ChangeBatch, live: Rows) -> int:
    if batch.deletes == 0:
        return 0
    return sum(live.table[DELETE].to_pylist()) if live.is_local else live.frame.where(DELETE).count()


def sequences_of(rows: DataFrame, columns: ChangeColumns, column: str) -> DataFrame:
    """What the side table has to know of a target's rows whose sequences are in ``column``; of other writers' rows, nothing."""
    at = F.col(quoted(column)).cast(columns.sequence_type)
    whole = reduce(Column.__and__, (key.isNotNull() for key in columns.key_columns), at.isNotNull())
    return rows.where(whole).select(*columns.key_columns, at.alias(AT), F.lit(False).alias(DELETED))


def compact(side: SideTable, columns: ChangeColumns) -> None:
    """Reduce the side table to one row of each key, where it has many files."""
    rows = side.read()
    if rows is not None:
        side.compact(_greatest(rows, list(columns.keys), RECORDED_AT))


def _greatest(remembered: DataFrame, keys: list[str], *also: str) -> DataFrame:
    """The row of each key that counts. At the same sequence a delete wins."""
    names = [F.col(quoted(key)) for key in keys]
    last = remembered.groupBy(*names).agg(F.max(F.struct(AT, DELETED, *also)).alias("last"))
    return last.select(*names, "last.*")


def _current(batch: ChangeBatch, remembered: DataFrame | None, cleared_at: Column | None) -> DataFrame:
    """The events that are not older than what is remembered."""
    keys, events = list(batch.columns.keys), batch.events
    if cleared_at is not None:
        events = events.where(F.col(SEQUENCE) >= cleared_at)
    if remembered is None:
        return events.withColumn(_TIE, F.lit(False))
    batch_keys = F.broadcast(events.select(*batch.columns.key_columns))
    about = remembered.alias("k").where(batch.key_filter("k")).join(batch_keys, keys, "left_semi")
    joined = events.join(_greatest(about, keys), keys, "left")
    newer, tie = _against_remembered()
    return joined.where(newer).withColumn(_TIE, tie).drop(AT, DELETED)


def _against_remembered() -> tuple[Column, Column]:
    """Whether an event is not older than what is remembered of its key, and whether only its values can tell which one counts."""
    same = F.col(AT).isNotNull() & (F.col(SEQUENCE) == F.col(AT))
    newer = F.col(AT).isNull() | (F.col(SEQUENCE) > F.col(AT)) | (same & ~F.col(DELETED))
    return newer, same & ~F.col(DELETE)


def _rows_to_remember(
    batch: ChangeBatch, live: Rows, side: SideTable, cleared_at: Column | None
) -> Rows | None:
    """The rows that the batch adds to the side table."""
    keys = list(batch.columns.keys)
    only_deletes = batch.columns.sequence_column is not None
    if only_deletes and batch.deletes == 0 and batch.cleared_at is None:
        return None
    rows = (live.frame.where(DELETE) if only_deletes else live.frame).select(
        *batch.columns.key_columns,
        F.col(SEQUENCE).alias(AT),
        F.col(DELETE).alias(DELETED),
    )
    if batch.cleared_at is not None and cleared_at is not None:
        truncate = {AT: cleared_at, DELETED: F.lit(False)}
        return Rows(rows.unionByName(truncate_row(side.spark, batch, truncate)))
    if not live.is_local:
        return Rows(rows)
    table = live.table.filter(live.table[DELETE]) if only_deletes else live.table
    return Rows(rows, table.select([*keys, SEQUENCE, DELETE]).rename_columns([*keys, AT, DELETED]))


def _merge(
    batch: ChangeBatch,
    live: Rows,
    remembered: DataFrame | None,
    target: OpenTarget,
    transaction: BatchTransaction,
    cleared_at: Column | None,
) -> None:
    columns, events = batch.columns, live.frame
    source = events.withColumn(_CLEARED, F.lit(False))
    if batch.cleared_at is not None and columns.sequence_column is None and remembered is not None:
        source = source.unionByName(_cleared_rows(batch, events, remembered), allowMissingColumns=True)
    source = flat(source, columns)
    same = [F.col(quoted("t", key)) == F.col(quoted("s", key)) for key in columns.keys]
    clears = batch.cleared_at is not None
    on = reduce(Column.__and__, same) if clears else reduce(Column.__and__, [*same, batch.key_filter("t")])
    newer = _newer(batch, target.rows.schema)
    values = merged_values(columns.names, source, target.rows.schema)
    merge = target.table.alias("t").merge(source.alias("s"), on).withSchemaEvolution()
    merge = merge.whenMatchedDelete(F.col(f"s.{_CLEARED}") | (F.col(f"s.{DELETE}") & newer))
    merge = merge.whenMatchedUpdate(newer & ~F.col(f"s.{DELETE}"), set=values)
    if clears or not _can_only_update(live, target, columns.keys):
        merge = merge.whenNotMatchedInsert(~F.col(f"s.{DELETE}"), values=values)
    if clears and columns.sequence_column is not None and cleared_at is not None:
        outdated = F.col(quoted("t", columns.sequence_column)) < cleared_at
        merge = merge.whenNotMatchedBySourceDelete(outdated)
    # The rows that a truncate deletes are looked up when the source is read.
    with committing(events.sparkSession, transaction, fixed_source=live.is_local and not clears):
        merge.execute()


def _can_only_update(live: Rows, target: OpenTarget, keys: tuple[str, ...]) -> bool:
    """Whether the batch can't insert a row: Delta then shuffles none of the target's rows.

    A row that another writer deletes at this moment stays deleted, as if that had happened after the batch.
    """
    from pyarrow import compute

    if not live.is_local:
        return False
    upserts = live.table.filter(compute.invert(live.table[DELETE]))
    return has_all_keys(target.path, keys, upserts)


def _cleared_rows(batch: ChangeBatch, events: DataFrame, remembered: DataFrame) -> DataFrame:
    """The keys that a truncate deletes: their last event is older, and the batch has none about them."""
    keys = list(batch.columns.keys)
    older = _greatest(remembered.where(~has_no_key(batch.columns.keys)), keys).where(~F.col(DELETED))
    assert batch.cleared_at is not None
    older = older.where(F.col(AT) < batch.cleared_at)
    cleared = older.join(events.select(*batch.columns.key_columns), keys, "left_anti")
    return cleared.select(*batch.columns.key_columns, F.lit(True).alias(DELETE), F.lit(True).alias(_CLEARED))


def _newer(batch: ChangeBatch, table: StructType) -> Column:
    """Whether an event is newer than the target's row."""
    columns = batch.columns
    greater = _greater(batch, table)
    if columns.sequence_column is None:
        return ~F.col(f"s.{_TIE}") | greater
    first = ~F.col(f"s.{_TIE}") | greater
    if columns.sequence_column not in table.names:  # kept from now on; what came before is in the side table
        return first
    at, row_at = F.col(f"s.{SEQUENCE}"), F.col(quoted("t", columns.sequence_column))
    # A row without a sequence was written by someone else, or before the table had the column: every event is newer.
    return (row_at.isNull() & first) | (at > row_at) | ((at == row_at) & (F.col(f"s.{DELETE}") | greater))


def _greater(batch: ChangeBatch, table: StructType) -> Column:
    new, old = [], []
    for field in batch.columns.fields:
        if (
            field.name == batch.columns.sequence_column
        ):  # equal where this is asked, and NULL in rows from before it was kept
            continue
        # A column that the table does not have yet is NULL in all of its rows.
        exists = field.name in table.names
        value = F.col(quoted("t", field.name)) if exists else F.lit(None)
        value = fitted(value, table[field.name].dataType if exists else field.dataType, field.dataType)
        new.append(comparable(F.col(quoted("s", field.name)), field.dataType))
        old.append(comparable(value, field.dataType))
    return F.struct(*new) > F.struct(*old)
