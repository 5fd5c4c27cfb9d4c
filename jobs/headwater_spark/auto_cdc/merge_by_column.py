"""Type 1 where a NULL leaves the value as it was: each column has the value of the last event that set it.

The side table has for every key (NULL: the last truncate) the last delete, the last upsert, and the sequence of each column's
value. Structs are decided field by field, arrays and maps as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from headwater_spark.auto_cdc.change_columns import DELETE, OWN, SEQUENCE, ChangeColumns, is_selected
from headwater_spark.auto_cdc.change_events import ROW, SELECTED, ChangeBatch, comparable
from headwater_spark.auto_cdc.change_metrics import with_counts
from headwater_spark.auto_cdc.merged_values import merged_values
from headwater_spark.auto_cdc.on_driver.rows import Rows, reusable
from headwater_spark.auto_cdc.on_driver.verdict import BY_COLUMN, Declined, engine
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import REMOVED, SideTable
from headwater_spark.auto_cdc.truncates import has_no_key, last_truncate, truncate_row
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing
from headwater_spark.plans.names import quoted

DELETED_AT, WRITTEN_AT, COLUMNS_AT = f"{OWN}deleted_at", f"{OWN}written_at", f"{OWN}columns_at"
# Expires: keys that are deleted, and not written since.
EXPIRES = f"{DELETED_AT} IS NOT NULL AND ({WRITTEN_AT} IS NULL OR {WRITTEN_AT} <= {DELETED_AT})"
Path = tuple[str, ...]


def merge_by_column(
    batch: ChangeBatch, target: OpenTarget, side: SideTable, transaction: BatchTransaction
) -> None:
    """Merge a batch into a type 1 target whose columns are decided one by one."""
    columns = batch.columns
    leaves = list(_leaves(columns))
    remembered = side.rows_about(batch)
    cleared = last_truncate(batch, remembered, WRITTEN_AT)
    if remembered is not None:
        remembered = remembered.where(~has_no_key(columns.keys))
    local = batch.local is not None and batch.cleared_at is None
    with reusable(_state(batch, leaves, remembered, target, cleared), local=local) as state:
        alive, dead = _counts(state)
        transaction = with_counts(transaction, batch, upserts=alive, tombstones=dead)
        _remember(state, batch, side, transaction, cleared)
        transaction = transaction.with_metadata(**engine(Declined(BY_COLUMN)))
        _merge(batch, state, target, transaction)


def _counts(state: Rows) -> tuple[int, int]:
    """How many of the batch's keys have a row after it, and how many have none."""
    if state.is_local:
        dead = sum(state.table[DELETE].to_pylist())
        return state.table.num_rows - dead, dead
    alive, dead = state.frame.agg(F.count_if(~F.col(DELETE)), F.count_if(DELETE)).collect()[0]
    return alive, dead


def _leaves(columns: ChangeColumns) -> Iterator[tuple[Path, DataType, bool]]:
    """The fields that are decided one by one: path, type, and whether NULL means unchanged."""
    for field in columns.fields:
        if field.name in columns.keys:
            continue
        ignored = field.name in columns.ignored
        if ignored and isinstance(field.dataType, StructType):
            yield from ((path, kind, True) for path, kind in _fields((field.name,), field.dataType))
        else:
            yield (field.name,), field.dataType, ignored


def _fields(above: Path, kind: StructType) -> Iterator[tuple[Path, DataType]]:
    for field in kind.fields:
        if isinstance(field.dataType, StructType):
            yield from _fields((*above, field.name), field.dataType)
        else:
            yield (*above, field.name), field.dataType


def _state(
    batch: ChangeBatch,
    leaves: list[tuple[Path, DataType, bool]],
    remembered: DataFrame | None,
    target: OpenTarget,
    cleared: Column | None,
) -> DataFrame:
    """The new state of each key of the batch: the remembered state merged with the batch."""
    columns, keys = batch.columns, batch.columns.key_columns
    upsert = ~F.col(DELETE)
    aggregates = [
        F.max(F.when(F.col(DELETE), F.col(SEQUENCE))).alias("batch_deleted"),
        F.max(F.when(upsert, F.col(SEQUENCE))).alias("batch_written"),
    ]
    for number, (path, kind, ignored) in enumerate(leaves):
        value = _at(F.col(ROW), path)
        speaks = upsert & value.isNotNull() if ignored else upsert
        if columns.selected is not None:
            speaks = speaks & is_selected(path[0], F.col(SELECTED))
        order = F.when(speaks, F.struct(F.col(SEQUENCE).alias("at"), comparable(value, kind).alias("value")))
        aggregates += [
            F.max_by(F.when(speaks, value), order).alias(f"v{number}"),
            F.max(order).alias(f"o{number}"),
        ]
    events = batch.events.coalesce(1) if batch.local is not None else batch.events
    reduced = events.groupBy(*keys).agg(*aggregates)
    joined = _with_remembered(reduced, batch, leaves, remembered)
    joined = _with_rows(joined, batch, leaves, target)
    return _decided(joined, columns, leaves, cleared)


def _with_remembered(
    reduced: DataFrame,
    batch: ChangeBatch,
    leaves: list[tuple[Path, DataType, bool]],
    remembered: DataFrame | None,
) -> DataFrame:
    keys, kind = list(batch.columns.keys), batch.columns.sequence_type
    names = [f"a{number}" for number in range(len(leaves))]
    if remembered is None:
        return reduced.withColumns(
            {name: F.lit(None).cast(kind) for name in ("known_deleted", "known_written", *names)}
        )
    columns_at = remembered.schema[COLUMNS_AT].dataType
    assert isinstance(columns_at, StructType)
    labels = [_label(path) for path, _, _ in leaves]
    at = [
        (F.col(COLUMNS_AT).getField(label) if label in columns_at.names else F.lit(None).cast(kind)).alias(
            name
        )
        for name, label in zip(names, labels, strict=True)
    ]
    # A truncate is about every remembered key.
    clears = batch.cleared_at is not None
    about = remembered.alias("k").where(F.lit(True) if clears else batch.key_filter("k")).select(
        *batch.columns.key_columns,
        F.col(DELETED_AT).alias("known_deleted"), F.col(WRITTEN_AT).alias("known_written"), *at,
    )  # fmt: skip
    return reduced.join(about, keys, "full" if clears else "left")


def _with_rows(
    joined: DataFrame, batch: ChangeBatch, leaves: list[tuple[Path, DataType, bool]], target: OpenTarget
) -> DataFrame:
    """With the target's values: a column that the batch does not set keeps them."""
    keys = list(batch.columns.keys)
    rows = target.rows_about(batch).frame
    values = [
        (_at(F.col(quoted(path[0])), path[1:]) if _has(rows.schema, path) else F.lit(None).cast(kind)).alias(
            f"t{number}"
        )
        for number, (path, kind, _) in enumerate(leaves)
    ]
    pruned = F.lit(True) if batch.cleared_at is not None else batch.key_filter("t")
    current = rows.alias("t").where(pruned).select(*batch.columns.key_columns, *values)
    return joined.join(current, keys, "left")


def _decided(
    joined: DataFrame,
    columns: ChangeColumns,
    leaves: list[tuple[Path, DataType, bool]],
    cleared: Column | None,
) -> DataFrame:
    def holds_at(moment: Column) -> Column:
        """Whether a value of this moment outlived all deletes and truncates."""
        holds = moment.isNotNull() & (deleted.isNull() | (moment > deleted))
        return holds if cleared is None else holds & (moment >= cleared)

    deleted = F.greatest("known_deleted", "batch_deleted")
    written = F.greatest("known_written", "batch_written")
    values: dict[Path, Column] = {}
    at: list[Column] = []
    for number, (path, kind, _) in enumerate(leaves):
        old_at = F.col(f"a{number}")
        old = F.when(
            old_at.isNotNull(),
            F.struct(old_at.alias("at"), comparable(F.col(f"t{number}"), kind).alias("value")),
        )
        takes = F.coalesce(F.col(f"o{number}") > old, F.col(f"o{number}").isNotNull())
        stated_at = F.when(takes, F.col(f"o{number}.at")).otherwise(old_at)
        holds = holds_at(stated_at)
        values[path] = F.when(holds, F.when(takes, F.col(f"v{number}")).otherwise(F.col(f"t{number}")))
        at.append(F.when(holds, stated_at).alias(_label(path)))
    alive = holds_at(written)
    row = [_built((field.name,), field.dataType, values).alias(field.name)
           for field in columns.fields if field.name not in columns.keys]  # fmt: skip
    return joined.select(
        *columns.key_columns,
        *row,
        deleted.alias(DELETED_AT),
        written.alias(WRITTEN_AT),
        F.struct(*at).alias(COLUMNS_AT),
        (~alive).alias(DELETE),
    )


def _remember(
    state: Rows,
    batch: ChangeBatch,
    side: SideTable,
    transaction: BatchTransaction,
    cleared: Column | None,
) -> None:
    columns = batch.columns
    rows = state.frame.select(
        *columns.key_columns,
        DELETED_AT,
        WRITTEN_AT,
        COLUMNS_AT,
        F.lit(False).alias(REMOVED),
    )
    if batch.cleared_at is not None and cleared is not None:
        nothing = {name: F.lit(None).cast(rows.schema[name].dataType) for name in (DELETED_AT, COLUMNS_AT)}
        row = {WRITTEN_AT: cleared, REMOVED: F.lit(False), **nothing}
        rows = rows.unionByName(truncate_row(side.spark, batch, row))
    within = F.lit(True) if batch.cleared_at is not None else batch.key_filter("t")
    side.merge(Rows(rows, state.table), list(columns.keys), transaction, within)


def _merge(batch: ChangeBatch, state: Rows, target: OpenTarget, transaction: BatchTransaction) -> None:
    columns = batch.columns
    on = F.lit(True) if batch.cleared_at is not None else batch.key_filter("t")
    for key in columns.keys:
        on = on & (F.col(quoted("t", key)) == F.col(quoted("s", key)))
    values = merged_values(columns.names, state.frame, target.rows.schema)
    names = target.columns
    changed = F.lit(False)
    for field in columns.fields:
        if field.name in names:
            new, old = (comparable(F.col(quoted(side, field.name)), field.dataType) for side in "st")
            changed = changed | ~new.eqNullSafe(old)
        else:
            changed = changed | F.col(quoted("s", field.name)).isNotNull()
    merge = (
        target.table.alias("t").merge(state.frame.alias("s"), on).withSchemaEvolution()
        .whenMatchedDelete(F.col(f"s.{DELETE}"))
        .whenMatchedUpdate(changed, set=values)
        .whenNotMatchedInsert(~F.col(f"s.{DELETE}"), values=values)
    )  # fmt: skip
    with committing(state.frame.sparkSession, transaction, fixed_source=state.is_local):
        merge.execute()


def _built(path: Path, kind: DataType, values: dict[Path, Column]) -> Column:
    if path in values:
        return values[path]
    assert isinstance(kind, StructType)
    parts = [(f.name, _built((*path, f.name), f.dataType, values)) for f in kind.fields]
    some = F.coalesce(*(F.when(part.isNotNull(), F.lit(True)) for _, part in parts), F.lit(False))
    return F.when(some, F.struct(*(part.alias(name) for name, part in parts)))


def _at(value: Column, path: Path) -> Column:
    for name in path:
        value = value.getField(name)
    return value


def _has(schema: StructType, path: Path) -> bool:
    kind: DataType = schema
    for name in path:
        if not isinstance(kind, StructType) or name not in kind.names:
            return False
        kind = kind[name].dataType
    return True


def _label(path: Path) -> str:
    return "__".join(path)
