"""A flow of snapshots: each that is new is compared with the table and merged in one commit, exactly once."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.snapshot_versions import VERSION_KEY, SnapshotPosition, encoded
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import epochs_written, head_version, readable_table_id
from headwater.errors import CheckpointMismatch
from headwater.event_log.details import FlowStatus, flow_progress, operation_progress
from headwater.preflight.checks import CHECKS_OF_ONCE_FLOWS, FlowStart, check_start
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, check_unchanged
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.auto_cdc.merge_snapshot import merge_snapshot, snapshot_changes
from headwater_spark.auto_cdc.widening import made_to_fit
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, apart
from headwater_spark.delta_writes.sink_commits import SinkCommits, has_transaction
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.view_refresh import fingerprints
from headwater_spark.resolution.snapshot_calls import Snapshot, next_snapshot, snapshots_file


def run_snapshots(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Apply the snapshots that the flow has not applied yet, oldest first.

    Raises:
        NullKey, DuplicateKey, SnapshotOutOfOrder, FlowFailed: of that snapshot nothing was written; those before it stay.
        ChangeFlowChanged, CheckpointMismatch: nothing was written.
    """
    checkpoint = context.checkpoint(dataset.name, flow.name)
    table = context.table_path(dataset)
    known = checkpoint.read_state()
    sink, pipeline = readable_table_id(table), context.pipeline.project.pipeline_id
    check_start(
        FlowStart(pipeline, flow.name, dataset.name, checkpoint, known or FlowState(), table, sink),
        CHECKS_OF_ONCE_FLOWS,
    )
    # Where its state is lost, the table's log knows under which epoch its rows are there.
    written = epochs_written(table, *context.identity(dataset.name, flow.name).names)
    state = known or checkpoint.update_state(epoch=max(written, default=0))
    entry = next(item for item in context.pipeline.manifest.flows if item.name == flow.name)
    # Taken before the read: what arrives meanwhile is compared by the next update, never missed.
    now = fingerprints(context, entry)
    definition = context.pipeline.manifest.source_hash
    same = now is not None and not entry.time_dependent and dict(state.input_versions) == now
    if not (state.completed and (flow.once or (same and state.definition_hash == definition))):
        checkpoint.update_state(completed=False, sink_id=sink)
        with context.pipeline.evaluation.settings(flow):
            applied = _Snapshots(context, dataset, flow, state, outcome).apply_all()
    else:
        applied = True
    stopped = context.stop_requested.is_set()
    checkpoint.update_state(
        completed=not stopped and (applied or not flow.once),
        definition_hash=definition,
        input_versions=now or {},
    )
    outcome.version = head_version(table)
    outcome.status = FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED


class _Snapshots:
    """One run over the snapshots of a flow."""

    def __init__(
        self, context: UpdateContext, dataset: Dataset, flow: Flow, state: FlowState, outcome: FlowOutcome
    ) -> None:
        self._context, self._dataset, self._flow, self._outcome = context, dataset, flow, outcome
        self._epoch = state.epoch
        self._identity = context.identity(dataset.name, flow.name)
        self._application = self._identity.application(state.epoch)
        self._target = ChangeTarget.of(
            context.table_path(dataset), context.change_memory(dataset.name), dataset.table_properties
        )
        self._versions = snapshots_file(context.pipeline.evaluation, flow, self._application)
        self._commits = SinkCommits(self._target.path, self._application)
        known = context.recorded_batches.result().get((flow.name, state.epoch))
        context.events.set_known_batches(flow.name, state.epoch, known)

    def apply_all(self) -> bool:
        """Apply one after the other; whether there is any in the table now."""
        position = self._position()
        while not self._context.stop_requested.is_set():
            snapshot = next_snapshot(self._context.pipeline.evaluation, self._flow, position)
            if snapshot is None:
                break
            position = self._apply(snapshot, position)
            if self._flow.snapshots is not None and self._flow.snapshots.following is None:
                break
        return position.number >= 0

    def _position(self) -> SnapshotPosition:
        """Where the flow stands: what a killed driver had begun is either in the table or has not happened."""
        position = self._versions.read()
        path = self._target.path
        if position is None and has_transaction(path, self._application, 0):
            position = self._versions.from_table(path, self._identity, self._epoch)
            if position is None:
                raise CheckpointMismatch(
                    f"It is not known any more which snapshots {self._flow.name!r} has applied.",
                    where=self._versions.path,
                    remedy=f"Fill the table anew: --full-refresh {self._dataset.name}",
                )
        position = position or SnapshotPosition()
        if position.intended is not None and has_transaction(path, self._application, position.intended[0]):
            position = self._versions.done(position)
            self._record(position.number, position.version)
        return position

    def _apply(self, snapshot: Snapshot, position: SnapshotPosition) -> SnapshotPosition:
        assert self._flow.snapshots is not None
        where, started = self._flow.location, time.monotonic()
        frame = apart(snapshot.frame)
        asked = replace(self._flow.snapshots.changes, sequence_by=snapshot.literal)
        columns = change_columns(asked, frame, where)
        check_unchanged(columns, self._target, where, events=False)
        spark, path = frame.sparkSession, self._target.path
        table = DeltaTable.forPath(spark, str(path))
        fitted = made_to_fit(spark, columns, path, table.toDF().schema, None, where)
        if fitted is not None:
            columns, table = fitted, DeltaTable.forPath(spark, str(path))
        with snapshot_changes(frame, columns, table, where) as changes:
            self._context.check_lease()
            position = self._versions.intend(position, snapshot.version)
            if changes.count:
                merge_snapshot(changes, snapshot.literal, table, self._transaction(position))
        position = self._versions.done(position)
        self._record(position.number, snapshot.version)
        self._context.events.emit(
            "operation_progress",
            f"{self._flow.name} compared and merged snapshot {snapshot.version}.",
            flow=self._flow.name,
            dataset=self._dataset.name,
            batch_id=position.number,
            epoch=self._epoch,
            details=operation_progress(
                "CDC_SNAPSHOT", "COMPLETED", round((time.monotonic() - started) * 1000)
            ),
            maturity="EVOLVING",
        )
        return position

    def _transaction(self, position: SnapshotPosition) -> BatchTransaction:
        assert position.intended is not None
        number, version = position.intended
        told: dict[str, Any] = {
            "pipeline": self._identity.pipeline,
            "flow": self._identity.flow,
            "epoch": self._epoch,
            "batch": number,
            VERSION_KEY: encoded(version),
        }
        return BatchTransaction(self._application, number, json.dumps(told))

    def _record(self, number: int, version: Any) -> None:
        commit = self._commits.find(number)
        written = commit.rows if commit else 0
        deleted = (commit.deleted or 0) if commit else 0
        # What differs from the table is what comes in.
        self._outcome.add_batch(
            input_rows=written + deleted,
            output_rows=written,
            dropped_rows=0,
            version=commit.version if commit else None,
        )
        self._context.events.emit(
            "flow_progress",
            f"Snapshot {version} of {self._flow.name}: {written} rows written, {deleted} deleted.",
            level="METRICS",
            flow=self._flow.name,
            dataset=self._dataset.name,
            batch_id=number,
            epoch=self._epoch,
            details=flow_progress(
                FlowStatus.RUNNING,
                metrics={
                    "num_input_rows": written + deleted,
                    "num_output_rows": written,
                    "num_upserted_rows": written,
                    "num_deleted_rows": deleted,
                },
                version=commit.version if commit else None,
            ),
        )
