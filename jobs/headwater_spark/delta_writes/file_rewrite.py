"""Rows of known files of a Delta table, changed in one pass, and committed as a merge.

A MERGE finds out by itself which files have rows to change, and which rows those are. Where both are known before, its second
half is enough: the files are read, rows are put in the place of others, what comes out is written. Delta's own parts
do that, one by one as its command calls them: constraints, statistics, the change feed and the check for what others have
committed meanwhile are its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from headwater.delta_log.table_history import has_transaction
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_internals import is_another_version, warn_of_another_version

_DELTA = "org.apache.spark.sql.delta"
# What Delta takes for the change feed, not for the table: the rows where this column is not NULL.
CHANGE_TYPE = "_change_type"
# What others have committed meanwhile is in the way.
_CONFLICTS = (
    ConcurrentAppendException, ConcurrentDeleteDeleteException, ConcurrentDeleteReadException,
    ConcurrentTransactionException, ConcurrentWriteException, MetadataChangedException, ProtocolChangedException,
)  # fmt: skip
_METRICS = (
    "operationNumSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsMatchedUpdated",
    "numTargetRowsNotMatchedBySourceUpdated", "numTargetRowsDeleted", "numTargetRowsMatchedDeleted",
    "numTargetRowsNotMatchedBySourceDeleted", "numTargetRowsCopied", "numTargetBytesAdded", "numTargetBytesRemoved",
    "numTargetFilesAdded", "numTargetFilesRemoved", "numTargetChangeFilesAdded", "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved", "numTargetDeletionVectorsUpdated", "executionTimeMs",
    "materializeSourceTimeMs", "scanTimeMs", "rewriteTimeMs",
)  # fmt: skip


@dataclass(frozen=True)
class DataFile:
    """A file of a table, as the log has it. ``path``: below the table's folder; ``modified``: ms since 1970."""

    path: str
    size: int
    modified: int
    rows: int


@dataclass(frozen=True)
class RowCounts:
    """How many rows of the table a commit is about."""

    inserted: int
    updated: int
    deleted: int


class FileRewrite:
    """A transaction of one table that puts new files in the place of ``files``. Left without a commit, nothing happened."""

    def __init__(
        self, session: SparkSession, jvm: Any, begun: Any, log: Any, files: Sequence[DataFile]
    ) -> None:
        self._session = session
        self._jvm = jvm
        self._begun = begun
        self._log = log
        self._files = files
        self._started = time.monotonic()
        self._removed = [_action(jvm, file) for file in files]

    @property
    def rows(self) -> DataFrame:
        """The rows of the files."""
        none = self._jvm.scala.Option.empty()
        files = self._seq(self._removed)
        return DataFrame(self._log.createDataFrame(self._begun.snapshot(), files, False, none), self._session)

    def commit(self, rows: DataFrame | None, counts: RowCounts, transaction: BatchTransaction) -> str | None:
        """Write ``rows`` and commit them in the place of the files.

        Args:
            rows: the table's columns, and ``_change_type`` for rows of the change feed; None where there are none.

        Returns:
            None where it is committed. Else why not: the files written have another number of rows than the counts say, or
            something else has been committed that this one can't stand beside.
        """
        written = [] if rows is None else _items(self._begun.writeFiles(rows._jdf))  # noqa: SLF001
        added = [action for action in written if action.getClass().getSimpleName() == "AddFile"]
        kept = sum(file.rows for file in self._files) - counts.updated - counts.deleted
        if any(file.numPhysicalRecords().isEmpty() for file in added):
            return "a written file's number of rows is not known"
        if sum(int(f.numPhysicalRecords().get()) for f in added) != kept + counts.updated + counts.inserted:
            return "the files came out with another number of rows"
        self._tell(counts, kept, added, len(written) - len(added))
        now = int(time.time() * 1000)
        removed = [file.removeWithTimestamp(now, True) for file in self._removed]
        self._begun.updateSetTransaction(
            transaction.application, transaction.batch_id, self._jvm.scala.Option.apply(now)
        )
        nothing = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
        try:
            self._begun.commitIfNeeded(self._seq([*written, *removed]), self._operation(), nothing)
        except _CONFLICTS:
            return "another commit was in the way"
        return None

    def _tell(self, counts: RowCounts, kept: int, added: list[Any], change_files: int) -> None:
        milliseconds = int((time.monotonic() - self._started) * 1000)
        values = {
            "operationNumSourceRows": counts.inserted + counts.updated + counts.deleted,
            "numTargetRowsInserted": counts.inserted,
            "numTargetRowsUpdated": counts.updated,
            "numTargetRowsMatchedUpdated": counts.updated,
            "numTargetRowsDeleted": counts.deleted,
            "numTargetRowsMatchedDeleted": counts.deleted,
            "numTargetRowsCopied": kept,
            "numTargetBytesAdded": sum(int(file.size()) for file in added),
            "numTargetBytesRemoved": sum(file.size for file in self._files),
            "numTargetFilesAdded": len(added),
            "numTargetFilesRemoved": len(self._files),
            "numTargetChangeFilesAdded": change_files,
            "executionTimeMs": milliseconds,
            "rewriteTimeMs": milliseconds,
        }
        create = self._jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric
        spark = self._session._jsparkSession  # noqa: SLF001
        metrics = {}
        for name in _METRICS:
            metrics[name] = create(spark.sparkContext(), name)
            metrics[name].set(values.get(name, 0))
        python = self._jvm.org.apache.spark.api.python.PythonUtils
        self._begun.registerSQLMetrics(spark, python.toScalaMap(metrics))

    def _operation(self) -> Any:
        none = self._jvm.scala.Option.empty
        predicate = getattr(self._jvm, f"{_DELTA}.DeltaOperations$MergePredicate")
        matched = self._seq([predicate(none(), "delete"), predicate(none(), "update")])
        inserted = self._seq([predicate(none(), "insert")])
        merge = getattr(self._jvm, f"{_DELTA}.DeltaOperations$Merge")
        return merge(none(), none(), none(), none(), matched, inserted, self._seq([]))

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)


@contextmanager
def file_rewrite(
    session: SparkSession, table: Path, version: int, files: Sequence[DataFile], transaction: BatchTransaction
) -> Iterator[FileRewrite | str]:
    """Begin to put new files in the place of some of a table's. A text says why a merge is to do it: the table has another
    version by now, or the batch already, or this Delta has no such parts.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - Delta has no public face for this
    with _active(session, jvm, transaction):
        yield _begun(session, jvm, table, version, files, transaction)


def _begun(
    session: SparkSession,
    jvm: Any,
    table: Path,
    version: int,
    files: Sequence[DataFile],
    transaction: BatchTransaction,
) -> FileRewrite | str:
    try:
        log = getattr(jvm, f"{_DELTA}.DeltaLog").forTable(session._jsparkSession, str(table))  # noqa: SLF001
        # Asked without Spark: Delta would put the table's whole state together for it.
        known = has_transaction(table, transaction.application, transaction.batch_id)
        begun = log.startTransaction()
        if known:
            return "the table has the batch"
        if begun.readVersion() != version:
            return "the table has moved on since it was looked up"
        begun.readTxn().addOne(transaction.application)
        rewrite = FileRewrite(session, jvm, begun, log, files)
        # As a MERGE marks it: rows that others add, or files that they remove, are in this one's way.
        begun.trackReadPredicates(rewrite._seq([]), False, True)  # noqa: SLF001
        begun.trackFilesRead(rewrite._seq(rewrite._removed))  # noqa: SLF001
        rewrite._operation()  # noqa: SLF001
    except (Py4JError, TypeError) as error:
        if not is_another_version(error):
            raise
        warn_of_another_version(jvm, "the fast path of AUTO CDC", error)
        return "this Delta has other internals"
    return rewrite


@contextmanager
def _active(session: SparkSession, jvm: Any, transaction: BatchTransaction) -> Iterator[None]:
    """Delta's parts ask the thread's session for settings; it is the batch's inside the block."""
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    metadata = "spark.databricks.delta.commitInfo.userMetadata"
    session.conf.set(metadata, transaction.user_metadata)
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        session.conf.unset(metadata)
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _action(jvm: Any, file: DataFile) -> Any:
    text = {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified,
        "dataChange": True,
        "stats": json.dumps({"numRecords": file.rows}),
    }
    return getattr(jvm, f"{_DELTA}.actions.Action").fromJson(json.dumps({"add": text}))


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.length())]
