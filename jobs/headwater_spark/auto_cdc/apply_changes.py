"""Applies a micro-batch of change events to its target: checked, decided over the state before it, committed once."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater.checkpoints.change_record import change_record, change_record_file
from headwater.checkpoints.layout import REMEMBERED
from headwater.definitions.change_conditions import ChangeFlowChanged
from headwater.definitions.flow_settings import fast_path
from headwater.delta_log.table_history import has_transaction
from headwater.files.atomic_files import write_atomically
from headwater.graph.change_targets import RETENTION_PROPERTY
from headwater.storage.place import Place
from headwater_spark.auto_cdc import merge_bitemporal, merge_by_column, merge_history, merge_latest
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.change_events import change_batch
from headwater_spark.auto_cdc.on_driver.look_up import may_be_written_from_the_driver
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import RETENTION, SideTable
from headwater_spark.auto_cdc.widening import widen_target
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.call_sites import without_call_sites

# Several flows of one application may write to a target at the same time: each batch is decided over the result of the last.
_TARGETS: defaultdict[Place, threading.Lock] = defaultdict(threading.Lock)
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
# What a target's rows are made with, in words.
_PARTS = {
    "from": "what it is filled from",
    "type": "stored_as_scd_type",
    "keys": "keys",
    "sequence": "the type of sequence_by",
    "system": "the type of system_sequence_by",
    "tracked": "the tracked columns",
    "nulls": "whether a NULL leaves a value as it was",
    "named": "whether events name the columns that they set (columns_to_update)",
    "kept": "whether the table keeps the column of sequence_by",
}


@dataclass(frozen=True)
class ChangeTarget:
    """A table that change flows write to. ``memory``: the folder of its side table.

    ``fast_path``: whether small batches may be written from the driver, without a MERGE.
    """

    path: Place
    memory: Place
    retention: timedelta = RETENTION
    fast_path: bool = True

    @classmethod
    def of(
        cls,
        path: Place,
        memory: Place,
        properties: Mapping[str, str],
        configuration: Mapping[str, str] = MappingProxyType({}),
    ) -> ChangeTarget:
        """The target with the settings of its ``properties``, or else of the pipeline's ``configuration``."""
        seconds = properties.get(RETENTION_PROPERTY)
        retention = timedelta(seconds=float(seconds)) if seconds is not None else RETENTION
        return cls(path, memory, retention, fast_path(properties, configuration))


@without_call_sites
def apply_changes(
    batch: DataFrame,
    columns: ChangeColumns,
    target: ChangeTarget,
    transaction: BatchTransaction,
    where: object = None,
) -> None:
    """Merge a micro-batch into its target, once.

    Args:
        batch: rows of the flow's source. They are read once.
        transaction: identifies the batch; applying it again changes nothing.

    Raises:
        NullSequence, NullKey: nothing of the batch was written.
        ColumnTypeChanged: a column's type no longer fits the target; nothing of the batch was written.
    """
    spark = batch.sparkSession
    with _TARGETS[target.path], _no_constraints(spark):
        if has_transaction(target.path, transaction.application, transaction.batch_id):
            return
        side = SideTable(spark, target.memory / REMEMBERED)
        side.recover(target.path)
        opened = OpenTarget.at(spark, target.path)
        fitted = widen_target(spark, columns, target.path, opened.rows.schema, side, where)
        if fitted is not None:
            columns, opened = fitted, OpenTarget.at(spark, target.path)
        if columns.by_column or columns.system is not None or not may_be_written_from_the_driver(target.path):
            opened.read_ahead()
        with change_batch(batch, columns, where, fast_path=target.fast_path) as events:
            if events.remaining or events.cleared_at is not None:
                _merge(columns)(events, opened, side, transaction)


@contextmanager
def _no_constraints(spark: SparkSession) -> Iterator[None]:
    """Have Spark infer no conditions from the columns of a query: it repeats each condition for each column that another is made
    of, and a wide row is compared column by column. With 22 columns the driver's memory did not hold them.
    """
    before = spark.conf.get(_CONSTRAINTS) or "true"
    spark.conf.set(_CONSTRAINTS, "false")
    try:
        yield
    finally:
        spark.conf.set(_CONSTRAINTS, before)


@without_call_sites
def expire(spark: SparkSession, columns: ChangeColumns, target: ChangeTarget) -> None:
    """Delete tombstones and superseded events that are older than the target's retention."""
    module = _module(columns)
    with _TARGETS[target.path]:
        side = SideTable(spark, target.memory / REMEMBERED)
        side.recover(target.path)
        if module is merge_bitemporal:  # what was known once stays to be asked for
            side.compact_all()
            return
        side.expire(target.retention, module.EXPIRES)
        if module is merge_latest:
            merge_latest.compact(side, columns)


def check_unchanged(
    columns: ChangeColumns,
    target: ChangeTarget,
    where: object,
    *,
    events: bool = True,
    spark: SparkSession | None = None,
) -> None:
    """Refuse to continue where the target's rows were made with other keys, sequence or tracked columns.

    The first check of a target records these. Order and letter case of keys do not matter. Where the sequence is no longer a
    column of the table, the sequences that its rows have are remembered beside it first.

    Args:
        events: False where the rows come from snapshots.
        spark: remembers the sequences; without it such a change is refused.

    Raises:
        ChangeFlowChanged: with what changed.
    """
    now = _made_with(columns, events=events)
    path, stored = change_record_file(target.memory), change_record(target.memory)
    if stored is None:
        write_atomically(path, json.dumps(now))
        return
    before = {**now, "from": "events", **stored}
    new = set(now["values"]) - set(before["values"])
    # A sequence column that the table gains is not a change: earlier sequences are in the side table.
    now_of_old = {
        **now,
        "tracked": [name for name in now["tracked"] if name not in new],
        "nulls": [n for n in now["nulls"] if n not in new] if columns.history else now["nulls"],
        "kept": now["kept"] and before["kept"],
    }
    moved = stored.get("sequence_column") if before["kept"] and not now["kept"] else None
    if moved is not None and spark is not None:
        now_of_old["kept"] = True
    for part, words in _PARTS.items():
        if before[part] != now_of_old[part]:
            raise ChangeFlowChanged(
                f"AUTO CDC: {words} changed from {before[part]} to {now_of_old[part]}; the table's rows were made with the first.",
                where=where,
                remedy="Change it back, or rebuild the table with --full-refresh.",
            )
    if now_of_old["kept"] and not now["kept"] and spark is not None:
        _remember_sequences(spark, columns, target, str(moved))
    if now != stored:
        write_atomically(path, json.dumps(now))


def _remember_sequences(
    spark: SparkSession, columns: ChangeColumns, target: ChangeTarget, column: str
) -> None:
    """Keep the sequences of a type 1 target's rows beside it; done twice, it says the same."""
    with _TARGETS[target.path]:
        side = SideTable(spark, target.memory / REMEMBERED)
        side.recover(target.path)
        rows = OpenTarget.at(spark, target.path).rows
        if column in rows.columns:
            side.remember(merge_latest.sequences_of(rows, columns, column))


def _made_with(columns: ChangeColumns, *, events: bool) -> dict[str, Any]:
    return {
        "from": "events" if events else "snapshots",
        "type": columns.scd_type,
        "keys": sorted([key.lower(), columns.type_of(key).simpleString()] for key in columns.keys),
        "sequence": columns.sequence_type.simpleString(),
        "system": None if columns.system_type is None else columns.system_type.simpleString(),
        # By name, so that a new column is not a change.
        "tracked": sorted(name.lower() for name in columns.tracked),
        "values": sorted(name.lower() for name in columns.values),
        # What is remembered beside the table depends on these.
        "nulls": sorted(name.lower() for name in columns.ignored) if columns.history else columns.by_column,
        "named": columns.rows_name_columns,
        "kept": columns.sequence_column is not None or columns.history or columns.by_column,
        "sequence_column": columns.sequence_column,
    }


def _module(columns: ChangeColumns) -> Any:
    if columns.system is not None:
        return merge_bitemporal
    if columns.history:
        return merge_history
    return merge_by_column if columns.by_column else merge_latest


def _merge(columns: ChangeColumns) -> Any:
    module = _module(columns)
    return getattr(module, module.__name__.rpartition(".")[2])
