"""Judge a batch, keep what a quarantine takes, and hand the rest to the target that writes the table."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame

from headwater.definitions.expectation import Expectation, UniqueWithin
from headwater_spark.execution.foreach_batch import BatchTarget, BatchTransaction
from headwater_spark.execution.sink_commits import as_metadata
from headwater_spark.expectations import Quality
from headwater_spark.quarantine.judgement import is_kept, judged_batch, own_columns
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.quarantine.unreadable_files import UnreadableFile

# A key that is to be there once in a table: flows that run side by side look and write in turn.
_LOOKING: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


@dataclass
class Judged:
    """Takes batches of rows that are marked (``mark_rows``), with their source's records.

    The quarantine is written first, the table second: a batch that the table has is whole. After a crash between the
    two, the quarantined rows are put anew, since rules may have changed meanwhile. ``qualities``: what each batch of
    this run came to. ``unreadable``: files that the batches of this run leave out; each is kept with its own batch.
    """

    target: BatchTarget
    rules: Sequence[Expectation]
    table: Path
    quarantine: QuarantineTable | None
    # The judged rows are kept by this target itself.
    passes: int = 1
    unreadable: Sequence[UnreadableFile] = ()
    qualities: dict[int, Quality] = field(default_factory=dict)
    _may_repeat: bool = True

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction; the quarantine then has it, too."""
        return self.target.has(transaction)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write both; nothing is written where a rule of kind fail is broken."""
        with ExitStack() as stack:
            if any(rule.unique and rule.unique.within is UniqueWithin.TABLE for rule in self.rules):
                stack.enter_context(_LOOKING[self.table])
            judged, quality = stack.enter_context(judged_batch(rows, self.rules, self.table))
            files = [file for file in self.unreadable if file.batch_id == transaction.batch_id]
            quality = replace(quality, files=len(files))
            told = replace(
                transaction,
                user_metadata=json.dumps(
                    {**json.loads(transaction.user_metadata), "quality": as_metadata(quality)}
                ),
            )
            self._hold(judged, files, quality, told)
            kept = judged.where(is_kept(self.rules)).select(*[_column(n) for n in own_columns(judged)])
            self.target.write(kept, told)
            self.qualities[transaction.batch_id] = quality

    def _hold(
        self,
        judged: DataFrame,
        files: Sequence[UnreadableFile],
        quality: Quality,
        transaction: BatchTransaction,
    ) -> None:
        if self.quarantine is None:
            return
        left = self._may_repeat and self.quarantine.has(transaction)
        self._may_repeat = False
        if left:
            self.quarantine.replace(judged, self.rules, transaction, files)
        elif quality.quarantined or files:
            self.quarantine.hold(judged, self.rules, transaction, files)


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
