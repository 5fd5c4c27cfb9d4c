"""The one writer for batches that the Delta sink can't take by itself: merges, replacements, users' functions.

A target is handed the batch and its transaction. Delta targets commit both in one step, so a batch that comes again
(its driver died before Spark had marked it as done) changes nothing. Later kinds of writing are further targets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from headwater.checkpoints.offsets import read_offsets


@dataclass(frozen=True)
class BatchTransaction:
    """The identity of a batch: Delta keeps (``application``, ``batch_id``) with the rows, and knows a batch it has.

    ``application``: ``<pipeline>.<flow>@<epoch>``. ``user_metadata``: JSON with pipeline, flow, epoch, batch and
    the batch's end offsets, one for each source.
    """

    application: str
    batch_id: int
    user_metadata: str

    def telling(self, **more: Any) -> BatchTransaction:
        """The same transaction, with more in its metadata."""
        return replace(self, user_metadata=json.dumps({**json.loads(self.user_metadata), **more}))


class BatchTarget(Protocol):
    """What takes batches. ``passes``: how often it reads the rows; more than once, and they are kept meanwhile."""

    @property
    def passes(self) -> int: ...  # noqa: D102

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the batch is in the table already; False where that can't be known."""

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write a batch; called again with the same transaction after a crash."""


def application_id(pipeline_id: str, flow: str, epoch: int) -> str:
    """The id under which a flow's epoch commits."""
    return f"{pipeline_id}.{flow}@{epoch}"


def apart(frame: DataFrame) -> DataFrame:
    """The frame in a session of its own: merges take their transaction from settings, which others shall not see."""
    session = frame.sparkSession
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())  # noqa: SLF001 - no public clone
    return DataFrame(frame._jdf, clone)  # noqa: SLF001


class BatchWriter:
    """What ``foreachBatch`` calls. ``error``: what the target raised, as it was before it went through the JVM.

    Args:
        target: takes the rows.
        checkpoint: the epoch's folder; the offset log in it says where a batch ends.
        stateful: whether the query keeps state: its rows are then read to the end whatever the target does with them,
            since Spark refuses to go on where a batch's state was not laid down.
        metadata: pipeline, flow and epoch, for those who read the table's history.
        fence: raises where this update no longer holds the right to write; asked before each batch.
    """

    def __init__(
        self,
        target: BatchTarget,
        application: str,
        checkpoint: Path,
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
        kept = self._target.passes > 1
        try:
            self._fence()
            transaction = self._transaction(batch_id)
            if kept:
                rows.persist(StorageLevel.MEMORY_AND_DISK)
            # Only the first batch of a run can be one that a killed driver left behind.
            written = self._may_repeat and self._target.has(transaction)
            self._may_repeat = False
            if not written:
                self._target.write(rows, transaction)
            if self._stateful and (written or kept):
                rows.write.format("noop").mode("overwrite").save()
        except Exception as error:
            self.error = error
            raise
        finally:
            if kept:
                rows.unpersist()

    def _transaction(self, batch_id: int) -> BatchTransaction:
        ends = [
            None if text is None else json.loads(text)
            for text in read_offsets(self._checkpoint, batch_id).sources
        ]
        metadata = {**self._metadata, "batch": batch_id, "end_offsets": ends}
        return BatchTransaction(self._application, batch_id, json.dumps(metadata))
