"""Ids under which epochs of the past committed are used up in the table's log, so that Delta itself keeps their drivers out.

A driver that was frozen between its check of the lease and its commit can't check any more. What it commits carries its
epoch's transaction id, though: Delta leaves out a batch whose number is not above the last one of its id, also where the
commit is already under way.

Decision 0093.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import query_id
from headwater.delta_log.table_history import last_batch, table_exists
from headwater.errors import CheckpointUnreadable

# No batch ever has this number; languages that count in doubles can still tell it from its neighbours.
LAST_BATCH = 2**53 - 1


def ids_before(checkpoint: FlowCheckpoint, identity: FlowIdentity, epoch: int) -> set[str]:
    """The ids under which a flow's epochs other than ``epoch`` commit: their queries' own, and those of foreachBatch."""
    state = checkpoint.read_state()
    known = {*checkpoint.epochs(), *([state.epoch] if state else [])} - {epoch}
    found = {identity.application(number) for number in known}
    for number in known:
        try:
            found.add(query_id(checkpoint.epoch_folder(number)) or "")
        except CheckpointUnreadable:
            continue  # what it has committed, it has; which id it would go on with, nobody can tell
    if state is not None and state.epoch != epoch:
        found.add(state.query_id or "")
    return found - {""}


def retire(spark: SparkSession, tables: Iterable[Path | None], ids: Collection[str]) -> None:
    """Use the ids up, in one commit for each table that is there and does not have them used up already."""
    from deltalake import DeltaTable

    for table in tables:
        if table is None or not table_exists(table):
            continue
        log = DeltaTable(str(table))
        left = [name for name in sorted(ids) if (last_batch(log, table, name) or 0) < LAST_BATCH]
        if left:
            _commit(spark, table, left)


def _commit(spark: SparkSession, table: Path, ids: Collection[str]) -> None:
    """A commit of nothing but transaction ids; no writer of Spark's makes one for several."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Delta has no Python face for it
    delta = jvm.org.apache.spark.sql.delta
    log = delta.DeltaLog.forTable(spark._jsparkSession, str(table))  # noqa: SLF001
    nothing = getattr(jvm.scala, "None$").__getattr__("MODULE$")
    actions = [delta.actions.SetTransaction(name, LAST_BATCH, nothing) for name in ids]
    operation = getattr(delta.DeltaOperations, "ManualUpdate$").__getattr__("MODULE$")
    log.startTransaction().commit(jvm.PythonUtils.toSeq(actions), operation)
