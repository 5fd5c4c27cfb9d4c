from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.layout import FlowCheckpoint, change_memory, flow_checkpoint
from headwater.checkpoints.unused_epoch import unused_epoch
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow_settings import is_real_time
from headwater.definitions.sink import SinkKind
from headwater.errors import CheckpointUnreadable, HeadwaterError, LeaseLost
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import FlowEntry
from headwater.leases.lease import Lease
from headwater.metastore.following import Follower
from headwater.storage.place import Place, located
from headwater_spark.execution.continuous_run import ContinuousRun
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.progress import ProgressListener
from headwater_spark.resolution.graph_resolution import ResolvedPipeline
from headwater_spark.views.shared_changes import SharedChanges

_LOG = logging.getLogger("headwater.update")
# How long a flow waits for Spark's last progress event after its query has ended.
LAST_PROGRESS = timedelta(seconds=10)


class StopRequest(threading.Event):
    """Set when nothing more may start. ``signalled``: somebody outside wants it, not the update itself.

    ``recorded``: the event log says so.
    """

    signalled = False
    recorded = False

    def signal(self) -> None:
        """Set it from outside."""
        self.signalled = True
        self.set()


@dataclass
class UpdateContext:
    """What the parts of one update share.

    ``lease``: the right to write, to be checked before each write (``check_lease``).
    ``more_rounds``: a flow that is done waits for the next round. ``ends``: when the time is up (of ``time.monotonic``),
    None for never; a flow then stops after the batch in flight, and is done.
    ``continuous``: of a continuous update; None for one that ends by itself.
    ``flow_retries``: how often a flow is retried where no setting says so.
    ``changes``: the changed rows of sources that several materialized views read.
    """

    pipeline: ResolvedPipeline
    spark: SparkSession
    events: EventLogWriter
    listener: ProgressListener
    update_id: str
    recorded_batches: Future[dict[tuple[str, int], int]]
    lease: Lease
    attempts_left: bool = False
    stop_requested: StopRequest = field(default_factory=StopRequest)
    more_rounds: bool = False
    ends: float | None = None
    flow_retries: int = 0
    continuous: ContinuousRun | None = None
    changes: SharedChanges = field(default_factory=SharedChanges)

    def query_trigger(self, flow: str) -> dict[str, Any]:
        """The trigger of a flow's query, as arguments of ``DataStreamWriter.trigger``."""
        if self.continuous is None:
            return {"availableNow": True}
        kind = "realTime" if is_real_time(self.pipeline.flow(flow).spark_conf) else "processingTime"
        return {kind: f"{round(self.continuous.intervals[flow] * 1000)} milliseconds"}

    @property
    def time_is_up(self) -> bool:
        """Whether no further batch may start."""
        return self.ends is not None and time.monotonic() >= self.ends

    def check_lease(self) -> None:
        """Raise LeaseLost where this process may no longer write."""
        self.lease.check()

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self.pipeline.project, self.events)

    def register_tables(self) -> None:
        """Have the metastore of the spec follow the tables; another process that has the lease now does it itself."""
        with suppress(LeaseLost):
            self.check_lease()
            self._follower.follow(self.pipeline.manifest)

    def checkpoint(self, dataset: str, flow: str) -> FlowCheckpoint:
        """The checkpoint folder of a flow."""
        return flow_checkpoint(self.pipeline.project.state_folder, dataset, flow)

    def identity(self, dataset: str, flow: str) -> FlowIdentity:
        """The names in a flow's commits."""
        project = self.pipeline.project
        return flow_identity(project.state_folder, project.pipeline_id, dataset, flow)

    def table_path(self, dataset: Dataset) -> Place:
        """The folder of a table."""
        return self.pipeline.evaluation.table_path(dataset)

    def delta_table(self, dataset: Dataset) -> Place | None:
        """The folder of the Delta table that a dataset's rows go to, None where they go elsewhere."""
        if dataset.sink is not None and dataset.sink.kind is not SinkKind.DELTA:
            return None
        return self.table_path(dataset)

    def quarantine_path(self, dataset: Dataset) -> Place | None:
        """The folder of a table's quarantine; None where no rule of it quarantines."""
        project = self.pipeline.project
        location = dataset.quarantine_location(project.pipeline_id)
        return None if location is None else located(project.warehouse, location)

    def change_memory(self, dataset: str) -> Place:
        """The folder of a table's side table for AUTO CDC."""
        return change_memory(self.pipeline.project.state_folder, dataset)

    def unused_epoch(self, dataset: str, flow: str) -> int:
        """An epoch that the flow never had, even where its checkpoint is lost: an id that is used twice loses rows."""
        target = self.pipeline.dataset(dataset)
        has_table = target.table_location(self.pipeline.project.pipeline_id) is not None
        return unused_epoch(
            self.checkpoint(dataset, flow),
            flow,
            self.identity(dataset, flow),
            self.table_path(target) if has_table else None,
            self.recorded_batches.result(),
        )

    def query_name(self, flow: str) -> str:
        """The name of a flow's streaming query, unique in the session."""
        return f"{self.pipeline.project.pipeline_id}.{flow}"

    def say(
        self, line: str, *, flow: str | None = None, batch: int | None = None, level: int = logging.INFO
    ) -> None:
        """Log a line of progress to standard error, for a terminal or Airflow's task log.

        Args:
            line: what to say.
            flow: the flow that it concerns.
            batch: the number of the flow's batch that it concerns.
            level: of ``logging``.

        """
        about = {"pipeline": self.pipeline.project.pipeline_id, "update": self.update_id, "flow": flow}
        _LOG.log(level, "%s", line, extra={**about, "batch": batch})

    def next_epoch(self, flow: FlowEntry, *, reset: bool) -> int:
        """The epoch in which an update that is about to begin will run a flow; ``reset``: it opens a new one first."""
        try:
            state = self.checkpoint(flow.target, flow.name).read_state()
            if state is not None and not reset:
                return state.epoch
            if state is not None and state.pending_epoch is not None:
                return state.pending_epoch
            is_new = reset or (flow.streaming and not flow.once)
            return self.unused_epoch(flow.target, flow.name) if is_new else 0
        except (HeadwaterError, OSError, ValueError):
            return 0  # damaged: the live epoch is not known, and the flow's own start says why

    def flow_event(
        self,
        outcome: FlowOutcome,
        status: FlowStatus,
        message: str,
        *,
        epoch: int | None = None,
        **details: object,
    ) -> None:
        """Record a flow's status. ``epoch``: of its checkpoint, if it is not the current one."""
        error = outcome.error
        self.events.emit(
            "flow_progress",
            message,
            level="ERROR" if status is FlowStatus.FAILED else "INFO",
            flow=outcome.flow,
            dataset=outcome.dataset,
            epoch=self._epoch(outcome) if epoch is None else epoch,
            details=flow_progress(status, **details),  # type: ignore[arg-type]
            error=error if status is FlowStatus.FAILED else None,
        )

    def _epoch(self, outcome: FlowOutcome) -> int:
        try:
            state = self.checkpoint(outcome.dataset, outcome.flow).read_state()
        except CheckpointUnreadable:
            return 0  # the live epoch is not known
        return state.epoch if state else 0
