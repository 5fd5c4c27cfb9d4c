"""Rewrite known files of a Delta table in one pass, or mark rows of them as deleted, committed as a merge.

A MERGE first searches for the files and rows to change. Where both are already known, its second half is enough: read
the files, replace rows, write the result. Delta's own internals do that, called one by one as its command calls them:
constraints, statistics, the change feed and conflict detection remain Delta's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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

from headwater.storage.place import Place
from headwater_spark.active_session import made_active
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.deletion_marks import MarkWriter
from headwater_spark.delta_writes.delta_internals import (
    DELTA,
    added_files,
    is_another_version,
    row_count,
    warn_of_another_version,
)
from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class
from headwater_spark.plans.plan_walk import items

# Rows where this column is not NULL go to the change feed, not to the table.
CHANGE_TYPE = "_change_type"
# Another writer's commit conflicts with this one.
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

# What Delta counts of a plain write.
_WRITTEN = ("numFiles", "numOutputRows", "numOutputBytes")


@dataclass(frozen=True)
class DataFile:
    """A file of a table, as the log has it.

    ``path``: below the table's folder; ``modified``: ms since 1970; ``rows``: those that are not deleted; ``deleted``: rows
    that the file still has, marked as deleted; ``entry``: its ``add`` action, needed where a file has a deletion vector or
    is to have one.
    """

    path: str
    size: int
    modified: int
    rows: int
    deleted: int = 0
    entry: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Marks:
    """Rows to be marked as deleted. ``rows``: their numbers in the file, from 0 and in any order."""

    file: DataFile
    rows: Sequence[int]

    @property
    def empties(self) -> bool:
        """Whether the file has no row left."""
        return len(self.rows) == self.file.rows


@dataclass(frozen=True)
class RowCounts:
    """How many rows of the table a commit changes."""

    inserted: int
    updated: int
    deleted: int

    @property
    def total(self) -> int:
        """How many rows come, change or go."""
        return self.inserted + self.updated + self.deleted


class FileRewrite:
    """A transaction of one table that replaces ``files`` by new ones, and marks rows of others as deleted.

    Without a commit, the table does not change.
    """

    def __init__(
        self,
        session: SparkSession,
        jvm: Any,
        delta_transaction: Any,
        log: Any,
        files: Sequence[DataFile],
        marks: Sequence[Marks] = (),
    ) -> None:
        self._session = session
        self._jvm = jvm
        self._delta_transaction = delta_transaction
        self._log = log
        self._files = files
        self._marks = marks
        self._started = time.monotonic()
        self._removed = [_action(jvm, file) for file in files]
        self._marked = [_action(jvm, mark.file) for mark in marks]
        self._mark_writer = MarkWriter(session, jvm, log, marks, self._marked)

    @property
    def rows(self) -> DataFrame:
        """The rows of the files."""
        none = java_class(self._jvm, OPTION).empty()
        files = self._seq(self._removed)
        return DataFrame(
            self._log.createDataFrame(self._delta_transaction.snapshot(), files, False, none), self._session
        )

    def commit(self, rows: DataFrame | None, counts: RowCounts, transaction: BatchTransaction) -> str | None:
        """Write ``rows`` and commit them in place of the files, and of the rows that are marked as deleted.

        Args:
            rows: the table's columns, and ``_change_type`` for rows of the change feed; None where there are none.

        Returns:
            None where it is committed. Otherwise why not: the files written have another number of rows than the counts
            say, rows to be marked were deleted before, or another commit conflicts with this one.
        """
        written = [] if rows is None else items(self._delta_transaction.writeFiles(rows._jdf))  # noqa: SLF001
        added = added_files(written)
        marked = sum(len(mark.rows) for mark in self._marks)
        copied = sum(file.rows for file in self._files) - (counts.updated + counts.deleted - marked)
        total = row_count(added)
        if total is None:
            return "a written file's number of rows is not known"
        if total != copied + counts.updated + counts.inserted:
            return "the files came out with another number of rows"
        self._register_metrics(counts, copied, added, len(written) - len(added))
        now = int(time.time() * 1000)
        removed = [file.removeWithTimestamp(now, True) for file in self._removed]
        vectors = self._mark_writer.write(now)
        if vectors is None:
            return "a row to be marked as deleted was deleted before"
        self._delta_transaction.updateSetTransaction(
            transaction.application, transaction.batch_id, java_class(self._jvm, OPTION).apply(now)
        )
        nothing = java_class(self._jvm, PYTHON_UTILS).toScalaMap({})
        try:
            self._delta_transaction.commitIfNeeded(
                self._seq([*written, *removed, *vectors]), self._operation(), nothing
            )
        except _CONFLICTS:
            return "another commit was in the way"
        return None

    def put(
        self,
        rows: DataFrame,
        predicate: str | None,
        transaction: BatchTransaction,
        *,
        whole: bool = False,
        rows_per_file: int | None = None,
    ) -> None:
        """Write ``rows`` and commit them in place of the files, as an overwrite of a part; of no files, as an append.

        Args:
            rows: the table's columns, and ``_change_type`` where there are rows for the change feed.
            predicate: what the rows that are replaced have in common, as the table's history shows it.
            whole: the files are all that the table has.
            rows_per_file: a file has no more rows than this; None leaves it to Spark.

        Raises:
            DeltaConcurrentModificationException: another commit conflicts with this one.
        """
        options = {} if rows_per_file is None else {"maxRecordsPerFile": str(rows_per_file)}
        written = items(self._delta_transaction.writeFiles(rows._jdf, self._options(options)))  # noqa: SLF001
        now = int(time.time() * 1000)
        removed = [file.removeWithTimestamp(now, True) for file in self._removed]
        if CHANGE_TYPE in rows.columns and len(added_files(written)) == len(written):
            # No row came or went. Without rows of its own, the feed would show all rows of the files as gone and come.
            written, removed = [], []
            # Delta counted what was written for nothing: a commit that states rows and has no file is damage (decision 0236).
            self._state_metrics(dict.fromkeys(_WRITTEN, 0))
        self._delta_transaction.updateSetTransaction(
            transaction.application, transaction.batch_id, java_class(self._jvm, OPTION).apply(now)
        )
        nothing = java_class(self._jvm, PYTHON_UTILS).toScalaMap({})
        self._delta_transaction.commitIfNeeded(
            self._seq([*written, *removed]), self._write_operation(predicate, whole=whole), nothing
        )

    def _options(self, options: Mapping[str, str]) -> Any:
        """Options of Delta's writer."""
        given = java_class(self._jvm, PYTHON_UTILS).toScalaMap(dict(options))
        conf = self._session._jsparkSession.sessionState().conf()  # noqa: SLF001
        made = java_class(self._jvm, f"{DELTA}.DeltaOptions")(given, conf)
        return java_class(self._jvm, OPTION).apply(made)

    def _write_operation(self, predicate: str | None, *, whole: bool = False) -> Any:
        option = java_class(self._jvm, OPTION)
        some, none = option.apply, option.empty()
        modes = java_class(self._jvm, "org.apache.spark.sql.SaveMode")
        mode = modes.Append if predicate is None and not whole else modes.Overwrite
        write = java_class(self._jvm, f"{DELTA}.DeltaOperations$Write")
        shown = none if predicate is None else some(predicate)
        return write(mode, some(self._seq([])), shown, none, none, none, none, none, none)

    def _register_metrics(self, counts: RowCounts, copied: int, added: list[Any], change_files: int) -> None:
        milliseconds = int((time.monotonic() - self._started) * 1000)
        gone = [*self._files, *(mark.file for mark in self._marks if mark.empties)]
        changed = [mark for mark in self._marks if not mark.empties]
        values = {
            "operationNumSourceRows": counts.total,
            "numTargetRowsInserted": counts.inserted,
            "numTargetRowsUpdated": counts.updated,
            "numTargetRowsMatchedUpdated": counts.updated,
            "numTargetRowsDeleted": counts.deleted,
            "numTargetRowsMatchedDeleted": counts.deleted,
            "numTargetRowsCopied": copied,
            "numTargetBytesAdded": sum(int(file.size()) for file in added),
            "numTargetBytesRemoved": sum(file.size for file in gone),
            "numTargetFilesAdded": len(added),
            "numTargetFilesRemoved": len(gone),
            "numTargetChangeFilesAdded": change_files,
            "numTargetDeletionVectorsAdded": sum(mark.file.deleted == 0 for mark in changed),
            "numTargetDeletionVectorsUpdated": sum(mark.file.deleted > 0 for mark in changed),
            "numTargetDeletionVectorsRemoved": sum(file.deleted > 0 for file in gone),
            "executionTimeMs": milliseconds,
            "rewriteTimeMs": milliseconds,
        }
        self._state_metrics({name: values.get(name, 0) for name in _METRICS})

    def _state_metrics(self, values: Mapping[str, int]) -> None:
        """Have the commit say this of itself, whatever was counted before under these names."""
        create = java_class(self._jvm, "org.apache.spark.sql.execution.metric.SQLMetrics").createMetric
        spark = self._session._jsparkSession  # noqa: SLF001
        metrics = {}
        for name, value in values.items():
            metrics[name] = create(spark.sparkContext(), name)
            metrics[name].set(value)
        python = java_class(self._jvm, PYTHON_UTILS)
        self._delta_transaction.registerSQLMetrics(spark, python.toScalaMap(metrics))

    def _operation(self) -> Any:
        none = java_class(self._jvm, OPTION).empty
        predicate = java_class(self._jvm, f"{DELTA}.DeltaOperations$MergePredicate")
        matched = self._seq([predicate(none(), "delete"), predicate(none(), "update")])
        inserted = self._seq([predicate(none(), "insert")])
        merge = java_class(self._jvm, f"{DELTA}.DeltaOperations$Merge")
        return merge(none(), none(), none(), none(), matched, inserted, self._seq([]))

    def _seq(self, items: list[Any]) -> Any:
        return java_class(self._jvm, PYTHON_UTILS).toSeq(items)


@contextmanager
def file_rewrite(
    session: SparkSession,
    table: Place,
    version: int,
    files: Sequence[DataFile],
    transaction: BatchTransaction,
    *,
    append: bool = False,
    marks: Sequence[Marks] = (),
) -> Iterator[FileRewrite | str]:
    """Begin to replace some of a table's files; a text says why a merge has to do it instead.

    The reasons: the table has moved on from ``version``, or has the batch, or this Delta lacks the internals.

    Args:
        append: rows only come, whatever rows there are: others' rows are no conflict.
        marks: rows of other files that are marked as deleted.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - Delta has no public API for this
    with _active(session, transaction):
        yield _begin(session, jvm, table, version, files, transaction, append=append, marks=marks)


def _begin(
    session: SparkSession,
    jvm: Any,
    table: Place,
    version: int,
    files: Sequence[DataFile],
    transaction: BatchTransaction,
    *,
    append: bool,
    marks: Sequence[Marks],
) -> FileRewrite | str:
    try:
        log = java_class(jvm, f"{DELTA}.DeltaLog").forTable(session._jsparkSession, str(table))  # noqa: SLF001
        # Looked up without Spark: Delta would load the table's whole state for it.
        is_duplicate = transaction.is_in(table)
        started = log.startTransaction()
        if is_duplicate:
            return "the table has the batch"
        if started.readVersion() != version:
            return "the table has moved on since it was looked up"
        started.readTxn().addOne(transaction.application)
        rewrite = FileRewrite(session, jvm, started, log, files, marks)
        if not append:
            # As a MERGE does: rows that others add, or files that they remove, are conflicts.
            started.trackReadPredicates(rewrite._seq([]), False, True)  # noqa: SLF001
            started.trackFilesRead(rewrite._seq([*rewrite._removed, *rewrite._marked]))  # noqa: SLF001
        rewrite._operation()  # noqa: SLF001
        rewrite._write_operation(None)  # noqa: SLF001
    except (Py4JError, TypeError) as error:
        if not is_another_version(error):
            raise
        warn_of_another_version(jvm, "the fast path of AUTO CDC", error)
        return "this Delta has other internals"
    return rewrite


@contextmanager
def _active(session: SparkSession, transaction: BatchTransaction) -> Iterator[None]:
    """Make the batch's session the thread's active one inside the block: Delta's internals take their settings from it."""
    metadata = "spark.databricks.delta.commitInfo.userMetadata"
    session.conf.set(metadata, transaction.user_metadata)
    try:
        with made_active(session):
            yield
    finally:
        session.conf.unset(metadata)


def _action(jvm: Any, file: DataFile) -> Any:
    fields: Mapping[str, Any] = {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified,
        "dataChange": True,
        "stats": json.dumps({"numRecords": file.rows}),
    }
    if file.entry is not None:
        # What a deletion vector belongs to is known by the vector, too: the log takes no other for the same file.
        fields = {**file.entry, "dataChange": True}
    return java_class(jvm, f"{DELTA}.actions.Action").fromJson(json.dumps({"add": fields}))
