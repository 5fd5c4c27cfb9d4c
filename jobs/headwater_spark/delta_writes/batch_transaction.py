"""The identity of a batch, which Delta commits together with its rows, and the protocol of targets that take batches.

A batch that is repeated (its driver died before Spark had marked it as done) changes nothing in a Delta table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place


@dataclass(frozen=True)
class BatchTransaction:
    """The identity of a batch: Delta stores (``application``, ``batch_id``) with the rows and skips a batch it has.

    ``application``: ``<pipeline>.<flow>@<epoch>``. ``user_metadata``: JSON with pipeline, flow, epoch, batch and
    the batch's end offsets, one for each source.
    """

    application: str
    batch_id: int
    user_metadata: str

    @property
    def options(self) -> dict[str, str]:
        """What a Delta writer carries with the rows, so that a batch that comes twice is written once."""
        return {"txnAppId": self.application, "txnVersion": str(self.batch_id)}

    def with_metadata(self, **more: Any) -> BatchTransaction:
        """The same transaction, with more in its metadata."""
        return replace(self, user_metadata=json.dumps({**json.loads(self.user_metadata), **more}))

    def is_in(self, table: Place) -> bool:
        """Whether a Delta table has the transaction."""
        return has_transaction(table, self.application, self.batch_id)


class BatchTarget(Protocol):
    """What takes batches. ``passes``: how often it reads the rows; if more than once, they are cached for it."""

    @property
    def passes(self) -> int: ...  # noqa: D102

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the target already has the batch; False where that can't be known."""

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write a batch; after a crash it is called again with the same transaction."""


def flow_metadata(pipeline: str, flow: str, **more: Any) -> dict[str, Any]:
    """The user metadata of a commit: the pipeline and flow that made it, and ``more``."""
    return {"pipeline": pipeline, "flow": flow, **more}


def in_own_session(frame: DataFrame) -> DataFrame:
    """The frame in a session of its own: merges take their transaction from session settings, which no other query may see."""
    session = frame.sparkSession
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())  # noqa: SLF001 - no public clone
    return DataFrame(frame._jdf, clone)  # noqa: SLF001
