"""A flow of snapshots: each that is new is compared with the table and merged in one commit, exactly once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from delta.tables import DeltaTable

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.snapshot_versions import VERSION_KEY, SnapshotPosition, encoded
from headwater.delta_log.table_history import has_transaction, head_version, readable_table_id
from headwater.errors import CheckpointMismatch
from headwater.event_log.details import FlowStatus, operation_progress
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, check_unchanged
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.auto_cdc.merge_snapshot import merge_snapshot, snapshot_changes
from headwater_spark.auto_cdc.widening import widen_target
from headwater_spark.delta_writes.batch_commits import BatchCommit, BatchCommits
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, in_own_session
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import count_rows
from headwater_spark.execution.start_checks import bounded_state
from headwater_spark.execution.view_sources import fingerprints
from headwater_spark.plans.call_sites import without_call_sites
from headwater_spark.resolution.snapshot_calls import Snapshot, next_snapshot, snapshots_file
from headwater_spark.rules.expectations import Quality


def run_snapshots(run: FlowRun) -> None:
    """Apply the snapshots that the flow has not applied yet, oldest first.

    Raises:
        NullKey, DuplicateKey, SnapshotOutOfOrder, FlowFailed: of that snapshot nothing was written; those before it stay.
        ChangeFlowChanged, CheckpointMismatch: nothing was written.
    """
    context, table = run.context, run.table
    state = bounded_state(run)
    # Taken before the read: what arrives meanwhile is compared by the next update, never missed.
    now = fingerprints(context, run.entry)
    definition = context.pipeline.manifest.definition_hash
    same = now is not None and not run.entry.time_dependent and dict(state.input_versions) == now
    applied = True
    if not (state.completed and (run.flow.once or (same and state.definition_hash == definition))):
        run.checkpoint.update_state(completed=False, sink_id=readable_table_id(table), role=run.role)
        with run.settings():
            applied = _Snapshots(run, state).apply_all()
    stopped = context.stop_requested.is_set()
    run.outcome.version = head_version(table)
    run.checkpoint.update_state(
        of_epoch=state.epoch,
        sink_version=run.outcome.version,
        completed=not stopped and (applied or not run.flow.once),
        definition_hash=definition,
        input_versions=now or {},
        role=run.role,
    )
    run.outcome.status = FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED


class _Snapshots:
    """One run over the snapshots of a flow."""

    def __init__(self, run: FlowRun, state: FlowState) -> None:
        context, dataset = run.context, run.dataset
        self._run, self._flow, self._epoch = run, run.flow, state.epoch
        self._application = run.identity.application(state.epoch)
        self._target = ChangeTarget.of(
            run.table, context.change_memory(dataset.name), dataset.table_properties
        )
        self._versions = snapshots_file(context.pipeline.evaluation, run.flow, self._application)
        self._commits = BatchCommits(self._target.path, self._application)
        known = context.recorded_batches.result().get((run.name, state.epoch))
        context.events.set_known_batches(run.name, state.epoch, known)

    def apply_all(self) -> bool:
        """Apply one after the other; whether there is any in the table now."""
        position = self._position()
        while not self._run.context.stop_requested.is_set():
            snapshot = next_snapshot(self._run.context.pipeline.evaluation, self._flow, position)
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
        intended = position.intended if position is not None else None
        if position is not None and intended and has_transaction(path, self._application, intended[0]):
            position = self._versions.done(position)
            self._record(position.number, position.version)
        position = position or SnapshotPosition()
        # The file is gone or an older copy: the next snapshot would come under a number that Delta passes over.
        if has_transaction(path, self._application, position.number + 1):
            stored = self._versions.in_table(path, self._run.identity, self._epoch)
            if stored is None:
                raise CheckpointMismatch(
                    f"It is no longer known which snapshots {self._flow.name!r} has applied.",
                    where=self._versions.path,
                    remedy=f"Refill the table: --full-refresh {self._run.dataset.name}",
                )
            position = self._versions.write(stored)
        return position

    @without_call_sites
    def _apply(self, snapshot: Snapshot, position: SnapshotPosition) -> SnapshotPosition:
        assert self._flow.snapshots is not None
        where, started = self._flow.location, time.monotonic()
        frame = in_own_session(snapshot.frame)
        declared = replace(self._flow.snapshots.changes, sequence_by=snapshot.literal)
        columns = change_columns(declared, frame, where, self._run.dataset.partition_columns)
        check_unchanged(columns, self._target, where, events=False)
        spark, path = frame.sparkSession, self._target.path
        table = DeltaTable.forPath(spark, str(path))
        fitted = widen_target(spark, columns, path, table.toDF().schema, None, where)
        if fitted is not None:
            columns, table = fitted, DeltaTable.forPath(spark, str(path))
        with snapshot_changes(frame, columns, table, where) as changes:
            self._run.context.check_lease()
            position = self._versions.intend(position, snapshot.version)
            if changes.count:
                merge_snapshot(changes, snapshot.literal, table, self._transaction(position))
        position = self._versions.done(position)
        self._record(position.number, snapshot.version)
        self._run.emit(
            "operation_progress",
            f"{self._flow.name} compared and merged snapshot {snapshot.version}.",
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
        return self._run.transaction(self._epoch, number, batch=number, **{VERSION_KEY: encoded(version)})

    def _record(self, number: int, version: Any) -> None:
        commit = self._commits.find(number)
        merged = commit or BatchCommit(version=-1, rows=0, timestamp=0, upserted=0, deleted=0)
        # What differs from the table is what comes in.
        quality = Quality(merged.rows + (merged.deleted or 0), 0, ())
        message = f"Snapshot {version} of {self._flow.name}: {merged.rows} rows written, {merged.deleted or 0} deleted."
        count_rows(
            self._run, quality, message, commit.version if commit else None, merged,
            level="METRICS", batch_id=number, epoch=self._epoch,
        )  # fmt: skip
