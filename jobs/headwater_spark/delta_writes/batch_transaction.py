"""A batch's identity, which Delta keeps with its rows, and what takes batches.

Delta targets commit both in one step, so a batch that comes again (its driver died before Spark had marked it as done)
changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class BatchTransaction:
    """The identity of a batch: Delta keeps (``application``, ``batch_id``) with the rows, and knows a batch it has.

    ``application``: ``<pipeline>.<flow>@<epoch>``. ``user_metadata``: JSON with pipeline, flow, epoch, batch and
    the batch's end offsets, one for each source.
    """

    application: str
    batch_id: int
    user_metadata: str

    def with_metadata(self, **more: Any) -> BatchTransaction:
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


def flow_metadata(pipeline: str, flow: str, **more: Any) -> dict[str, Any]:
    """What a commit says of itself: whose it is, and ``more``."""
    return {"pipeline": pipeline, "flow": flow, **more}


def application_id(pipeline_id: str, flow: str, epoch: int) -> str:
    """The id under which a flow's epoch commits."""
    return f"{pipeline_id}.{flow}@{epoch}"


def apart(frame: DataFrame) -> DataFrame:
    """The frame in a session of its own: merges take their transaction from settings, which others shall not see."""
    session = frame.sparkSession
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())  # noqa: SLF001 - no public clone
    return DataFrame(frame._jdf, clone)  # noqa: SLF001
