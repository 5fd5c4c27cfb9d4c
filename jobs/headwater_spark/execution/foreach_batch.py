"""The one writer for batches that the Delta sink can't write by itself: merges, replacements, users' functions.

A target is given the batch and its transaction. Delta targets commit both in one step, so a batch that is repeated
(its driver died before Spark had marked it as done) changes nothing.

Decision 0030.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from headwater.checkpoints.offsets import read_offsets
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTarget, BatchTransaction


class BatchWriter:
    """What ``foreachBatch`` calls. ``error``: what the target raised, before it passed through the JVM.

    Args:
        target: takes the rows.
        checkpoint: the epoch's folder; its offset log says where a batch ends.
        stateful: whether the query keeps state: its rows are then always read to the end, since Spark refuses to continue
            where a batch's state was not written.
        metadata: pipeline, flow and epoch, for readers of the table's history.
        fence: raises where this update has lost the lease; called before each batch.
    """

    def __init__(
        self,
        target: BatchTarget,
        application: str,
        checkpoint: Place,
        metadata: dict[str, Any],
        *,
        stateful: bool = False,
        fence: Callable[[], None],
    ) -> None:
        self.error: Exception | None = None
        self._target = target
        self._application = application
        self._checkpoint = checkpoint
        self._metadata = metadata
        self._stateful = stateful
        self._fence = fence
        self._may_repeat = True

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write one batch."""
        cached = self._target.passes > 1
        try:
            self._fence()
            transaction = self._transaction(batch_id)
            if cached:
                rows.persist(StorageLevel.MEMORY_AND_DISK)
            # Only the first batch of a run can be one that a killed driver left behind.
            written = self._may_repeat and self._target.has(transaction)
            self._may_repeat = False
            if not written:
                self._target.write(rows, transaction)
            if self._stateful and (written or cached):
                rows.write.format("noop").mode("overwrite").save()
        except Exception as error:
            self.error = error
            raise
        finally:
            if cached:
                rows.unpersist()

    def _transaction(self, batch_id: int) -> BatchTransaction:
        ends = [
            None if text is None else json.loads(text)
            for text in read_offsets(self._checkpoint, batch_id).sources
        ]
        metadata = {**self._metadata, "batch": batch_id, "end_offsets": ends}
        return BatchTransaction(self._application, batch_id, json.dumps(metadata))
