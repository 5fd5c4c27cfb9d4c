"""Judge a batch, write rejected rows to the quarantine, and pass the rest to the target that writes the table.

Decision 0061.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from headwater.definitions.expectation import Expectation, UniqueWithin
from headwater.delta_log.table_history import table_exists
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_commits import as_metadata
from headwater_spark.delta_writes.batch_transaction import BatchTarget, BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import stage_append
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.quarantine.unreadable_files import UnreadableFile
from headwater_spark.rules.expectations import Quality
from headwater_spark.rules.judgement import judged_batch, kept_rows
from headwater_spark.rules.one_pass import BatchObservation, can_collect, observe_rows, read_observed

# For keys that must be unique in a table: concurrent flows check and write one after the other.
_LOCKS: defaultdict[Place, threading.Lock] = defaultdict(threading.Lock)


@dataclass
class Judged:
    """Takes batches of rows that are marked (``mark_rows``), with their source's records.

    The quarantine is written first, the table second: a batch that the table has is complete. After a crash between the
    two, the quarantined rows are replaced, since rules may have changed. ``qualities``: of the batches of this run.
    ``unreadable``: files that the batches of this run exclude; each is quarantined with its own batch.
    ``one_pass``: the rows may be read twice, since no state depends on them, and are judged while they are written where
    possible; otherwise, and where too many rows are rejected, they are cached.
    ``whole``: the rows replace all rows of the table, and the rejected ones all rows of the quarantine.
    ``check_lease``: called before each of the two is written.
    """

    target: BatchTarget
    rules: Sequence[Expectation]
    table: Place
    quarantine: QuarantineTable | None
    check_lease: Callable[[], None]
    # The judged rows are cached by this target itself.
    passes: int = 1
    unreadable: Sequence[UnreadableFile] = ()
    one_pass: bool = False
    whole: bool = False
    qualities: dict[int, Quality] = field(default_factory=dict)
    _may_repeat: bool = True

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction; then the quarantine has it, too."""
        return self.target.has(transaction)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write both; nothing is written where a rule of kind fail is broken."""
        if self.one_pass and self._write_in_one_pass(rows, transaction):
            return
        with ExitStack() as stack:
            if any(rule.unique and rule.unique.within is UniqueWithin.TABLE for rule in self.rules):
                stack.enter_context(_LOCKS[self.table])
            existing = None if self.whole else self.table
            judged, quality = stack.enter_context(judged_batch(rows, self.rules, existing))
            self.write_judged(judged, quality, transaction)

    def write_judged(self, judged: DataFrame, quality: Quality, transaction: BatchTransaction) -> None:
        """Write both tables from rows that are judged already."""
        transaction = self._write_rejected(judged, quality, transaction)
        self.check_lease()
        self.target.write(kept_rows(judged, self.rules), transaction)

    def _write_in_one_pass(self, rows: DataFrame, transaction: BatchTransaction) -> bool:
        """Write the table's files, then the quarantine, then commit the files; False: nothing was done."""
        if not isinstance(self.target, DeltaAppend) or not can_collect(rows.schema, self.rules):
            return False
        observation = BatchObservation()
        accepted = kept_rows(observe_rows(rows, self.rules, observation), self.rules)
        staged = stage_append(accepted, self.table, transaction, self.target.partition_columns)
        if staged is None:
            return False
        quality, rejected = read_observed(rows, self.rules, observation)
        if rejected is None or staged.rows not in (None, quality.accepted):
            self.one_pass = False  # later batches will probably fail in the same way
            return False
        transaction = self._write_rejected(rejected, quality, transaction)
        self.check_lease()
        staged.commit(transaction)
        return True

    def _write_rejected(
        self, judged: DataFrame, quality: Quality, transaction: BatchTransaction
    ) -> BatchTransaction:
        """Write the quarantine; returns the transaction for the table, with the batch's quality."""
        files = [file for file in self.unreadable if file.batch_id == transaction.batch_id]
        quality = replace(quality, files=len(files))
        transaction = transaction.with_metadata(quality=as_metadata(quality))
        self._write_quarantine(judged, files, quality, transaction)
        self.qualities[transaction.batch_id] = quality
        return transaction

    def _write_quarantine(
        self,
        judged: DataFrame,
        files: Sequence[UnreadableFile],
        quality: Quality,
        transaction: BatchTransaction,
    ) -> None:
        if self.quarantine is None:
            return
        self.check_lease()
        if self.whole:
            if quality.quarantined or table_exists(self.quarantine.path):
                self.quarantine.replace_all(judged, transaction)
            return
        is_repeated = self._may_repeat and self.quarantine.has(transaction)
        self._may_repeat = False
        if is_repeated:
            self.quarantine.replace(judged, transaction, files)
        elif quality.quarantined or files:
            self.quarantine.hold(judged, transaction, files)
