"""Retire the transaction ids of earlier epochs in the table's log, so that Delta itself rejects commits of their drivers.

A driver that was frozen between its check of the lease and its commit can't check again. But its commit carries its
epoch's transaction id: Delta skips a batch whose number is not above the last one of its id, even where the commit is
already under way. The same ends a replay that stood still (decision 0197).

Decision 0093.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from delta.exceptions import ConcurrentTransactionException
from pyspark.sql import SparkSession

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import query_id
from headwater.delta_log.table_history import last_batch, table_exists
from headwater.errors import CheckpointUnreadable
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.java_classes import PYTHON_UTILS, java_class

# No batch ever has this number; it is the largest integer that a double represents exactly.
LAST_BATCH = 2**53 - 1


def ids_before(checkpoint: FlowCheckpoint, identity: FlowIdentity, epoch: int) -> set[str]:
    """The ids under which a flow's epochs other than ``epoch`` commit: those of their queries, and those of foreachBatch."""
    state = checkpoint.read_state()
    epochs = {*checkpoint.epochs(), *([state.epoch] if state else [])} - {epoch}
    ids = {identity.application(number) for number in epochs}
    for number in epochs:
        try:
            ids.add(query_id(checkpoint.epoch_folder(number)) or "")
        except CheckpointUnreadable:
            continue  # the id of its next commit can't be known
    if state is not None and state.epoch != epoch:
        ids.add(state.query_id or "")
    return ids - {""}


def retire(spark: SparkSession, tables: Iterable[Place | None], ids: Collection[str]) -> None:
    """Retire the ids, in one commit for each existing table that has not retired them yet."""
    for table in tables:
        if table is None or not table_exists(table):
            continue
        log = delta_table(table)
        live = [name for name in sorted(ids) if (last_batch(log, table, name) or 0) < LAST_BATCH]
        if live:
            _commit(spark, table, live)


def retire_unwritten(spark: SparkSession, table: Place, application: str) -> bool:
    """Retire an id under which nothing was committed; of it and a commit that is under way, Delta lets one stand.

    Returns:
        Whether it is retired, now or before; False where the table has a commit of this id, which then stays as it is.

    Raises:
        What Delta throws where the commit fails for another reason than one of the same id.
    """
    while True:
        started = _transaction(spark, table)
        # Reading the number makes a commit of this id that comes first a conflict.
        last = started.txnVersion(application)
        if last >= 0:
            return bool(last == LAST_BATCH)
        try:
            _commit_ids(spark, started, [application])
        except ConcurrentTransactionException:
            continue  # now it says which of the two was first


def _commit(spark: SparkSession, table: Place, ids: Collection[str]) -> None:
    """Commit transaction ids and nothing else; no writer of Spark does that for several ids."""
    _commit_ids(spark, _transaction(spark, table), ids)


def _transaction(spark: SparkSession, table: Place) -> Any:
    log = java_class(spark._jvm, f"{DELTA}.DeltaLog")  # noqa: SLF001 - Delta has no Python API for it
    return log.forTable(spark._jsparkSession, str(table)).startTransaction()  # noqa: SLF001


def _commit_ids(spark: SparkSession, started: Any, ids: Collection[str]) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001 - as above
    nothing = getattr(java_class(jvm, "scala.None$"), "MODULE$")
    set_transaction = java_class(jvm, f"{DELTA}.actions.SetTransaction")
    actions = [set_transaction(name, LAST_BATCH, nothing) for name in ids]
    operation = getattr(java_class(jvm, f"{DELTA}.DeltaOperations$ManualUpdate$"), "MODULE$")
    started.commit(java_class(jvm, PYTHON_UTILS).toSeq(actions), operation)
