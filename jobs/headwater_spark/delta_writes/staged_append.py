"""An append to a Delta table in two steps: its files are written first, and become part of the table with the commit.

Delta's own command does both at once. Its internals are called one by one here, as it calls them; schema, constraints,
partitions and transactions remain Delta's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_internals import (
    DELTA,
    added_files,
    is_another_version,
    row_count,
    warn_of_another_version,
)
from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class
from headwater_spark.plans.plan_walk import items


@dataclass(frozen=True)
class StagedAppend:
    """Rows in a table's folder that no reader sees yet. ``rows``: how many; None where Delta does not know.

    Without a commit the files belong to no version, and a vacuum removes them.
    """

    rows: int | None
    _jvm: Any
    _transaction: Any
    _written: Any
    _partitions: Any

    def commit(self, transaction: BatchTransaction) -> None:
        """Make them part of the table, under the batch's transaction."""
        operation = _operation(self._jvm, self._partitions, transaction.user_metadata)
        self._transaction.commitIfNeeded(self._written.actions(), operation, self._written.stringTags())


def stage_append(
    rows: DataFrame, table: Place, transaction: BatchTransaction, partition_columns: Sequence[str] = ()
) -> StagedAppend | None:
    """Write the files of an append.

    Returns:
        What is to be committed; None, with nothing written, where the table has the batch or this Delta lacks the internals.

    Raises:
        What Spark throws while it writes.
    """
    session = rows.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - Delta has no public API for this
    spark = session._jsparkSession  # noqa: SLF001
    try:
        python = java_class(jvm, PYTHON_UTILS)
        partitions = python.toSeq(list(partition_columns))
        log = java_class(jvm, f"{DELTA}.DeltaLog").forTable(spark, str(table))
        options = {"mergeSchema": "true", **transaction.options}
        command = java_class(jvm, f"{DELTA}.commands.WriteIntoDelta")(
            log,
            java_class(jvm, "org.apache.spark.sql.SaveMode").Append,
            java_class(jvm, f"{DELTA}.DeltaOptions")(python.toScalaMap(options), spark.sessionState().conf()),
            partitions,
            python.toScalaMap({}),
            rows._jdf,  # noqa: SLF001
            java_class(jvm, OPTION).empty(),
            java_class(jvm, OPTION).empty(),
            False,
        )
        _operation(jvm, partitions, "{}")
        started = log.startTransaction()
        # Not Delta's own look-up, for which Spark loads the table's whole state: three jobs for each batch.
        started.readTxn().addOne(transaction.application)
    except (Py4JError, TypeError) as error:
        if not is_another_version(error):
            raise
        warn_of_another_version(jvm, "judging rows while they are written", error)
        return None
    # Looked up after the transaction was begun: what is committed from now on is a conflict.
    if transaction.is_in(table):
        return None
    written = command.writeAndReturnCommitData(started, spark, java_class(jvm, OPTION).empty(), False)
    rows_written = row_count(added_files(items(written.actions())))
    return StagedAppend(rows_written, jvm, started, written, partitions)


def _operation(jvm: Any, partitions: Any, user_metadata: str) -> Any:
    """What the table's history says: the same as for any append."""
    option = java_class(jvm, OPTION)
    some, none = option.apply, option.empty()
    write = java_class(jvm, f"{DELTA}.DeltaOperations$Write")
    append = java_class(jvm, "org.apache.spark.sql.SaveMode").Append
    return write(append, some(partitions), none, some(user_metadata), none, none, some(True), none, none)
