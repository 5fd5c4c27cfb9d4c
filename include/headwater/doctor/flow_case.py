"""A flow under diagnosis: everything that diagnosis and repairs need, gathered once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from headwater.checkpoints.conditions import FlowStateDamaged, StorageNotReadable
from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import FlowCheckpoint, FlowState, flow_checkpoint
from headwater.checkpoints.rights import denied
from headwater.checkpoints.unused_epoch import unused_epoch
from headwater.delta_log.table_history import FlowCommit, flow_commits
from headwater.doctor.known_positions import known_positions, rows_by_batch
from headwater.doctor.snapshots import Snapshot, snapshots_of
from headwater.doctor.start_facts import flow_start
from headwater.event_log.reader import last_batches
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS, examine
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart, Positions
from headwater.storage.place import Place
from headwater.storage.walking import names_in


@dataclass(frozen=True)
class FlowCase:
    """A flow of a pipeline, as it is in storage. ``brokers``: whether Kafka may be queried."""

    project: PipelineProject
    manifest: Manifest
    flow: FlowEntry
    deep: bool = False
    brokers: bool = True

    @cached_property
    def start(self) -> FlowStart:
        """What a start would find; where ``flow.json`` is lost, in the newest epoch that the table or the event log knows."""
        facts = flow_start(self.project, self.manifest, self.flow, deep=self.deep, brokers=self.brokers)
        if facts.checkpoint.state_file.exists():
            return facts
        newest = max(self._epochs_known(), default=0)
        return replace(facts, state=FlowState(epoch=newest)) if newest > facts.state.epoch else facts

    def _epochs_known(self) -> Iterator[int]:
        """The epochs of which something was written, or recorded: a sink that is no table keeps none of them."""
        yield from (commit.epoch for commit in self.commits)
        names = (self.flow.name, self.identity.flow)
        yield from (epoch for name, epoch in last_batches(self.project.state_folder) if name in names)

    @cached_property
    def seen(self) -> tuple[object, ...]:
        """By what is known whether an update, or another repair, has been at the checkpoint since this case was looked at."""
        checkpoint = flow_checkpoint(self.project.state_folder, self.flow.target, self.flow.name)
        return _seen(checkpoint)

    @cached_property
    def identity(self) -> FlowIdentity:
        """The names in the flow's commits."""
        project = self.project
        return flow_identity(project.state_folder, project.pipeline_id, self.flow.target, self.flow.name)

    @property
    def target(self) -> DatasetEntry:
        """What the flow writes to."""
        return self.manifest.dataset(self.flow.target)

    @property
    def table(self) -> Place | None:
        """The folder of the table, None where rows go elsewhere."""
        return (
            None
            if self.target.location is None
            else self.manifest.table_path(self.project.warehouse, self.flow.target)
        )

    @cached_property
    def commits(self) -> list[FlowCommit]:
        """The flow's commits that the table's log still has."""
        return flow_commits(self.table, *self.identity.names) if self.table is not None else []

    @cached_property
    def damages(self) -> list[Damage]:
        """What is wrong, in the order in which a start would find it."""
        try:
            start = self.start
        except (FlowStateDamaged, StorageNotReadable) as error:
            return [Damage(error)]
        except PermissionError as error:  # of the table; other flows may be looked at
            return [Damage(denied(error))]
        if self.flow.once or start.role is FlowRole.SNAPSHOTS:
            return examine(start, CHECKS_OF_ONCE_FLOWS)
        return examine(start, CHECKS if self.flow.streaming else CHECKS_OF_VIEWS)

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The flow's snapshots, oldest first."""
        return snapshots_of(self.project.state_folder, self.flow.target, self.flow.name)

    @cached_property
    def positions(self) -> dict[int, Positions]:
        """Where batches of the live epoch ended, as far as it is recorded outside the checkpoint."""
        return known_positions(
            self.project.state_folder, self.identity, self.flow.name, self.table, self.epoch
        )

    @cached_property
    def rows(self) -> dict[int, int]:
        """What batches of the live epoch wrote."""
        return rows_by_batch(self.project.state_folder, self.identity, self.flow.name, self.table, self.epoch)

    @property
    def epoch(self) -> int:
        """The live epoch."""
        return self.start.state.epoch

    @property
    def written(self) -> int | None:
        """The last batch of the live epoch that the table has."""
        logged = [
            c.transaction[1] for c in self.commits if c.epoch == self.epoch and c.transaction is not None
        ]
        batches = [*logged, *([self.start.written] if self.start.written is not None else [])]
        return max(batches, default=None)

    @property
    def reached(self) -> int | None:
        """The last batch that the table has, including those that the live epoch has inherited from an earlier one."""
        first = self.start.state.first_batch
        batches = [*([first - 1] if first else []), *([self.written] if self.written is not None else [])]
        return max(batches, default=None)

    @property
    def by_key(self) -> bool:
        """Whether rows that come again replace those that are there."""
        return not self.flow.output_mode.only_adds_rows

    @property
    def stateful(self) -> bool:
        """Whether the flow keeps state."""
        return bool(self.start.state.state_settings) or (self.start.folder / "state").is_dir()

    @property
    def may_reset(self) -> bool:
        """Whether the table may be emptied, or filled from the beginning."""
        return self.target.table_properties.get("pipelines.reset.allowed", "true").lower() != "false"

    def unused_epoch(self) -> int:
        """An epoch that the flow never had: an id used twice loses rows."""
        state_folder, flow = self.project.state_folder, self.flow
        checkpoint = flow_checkpoint(state_folder, flow.target, flow.name)
        return unused_epoch(checkpoint, flow.name, self.identity, self.table, last_batches(state_folder))


def _seen(checkpoint: FlowCheckpoint) -> tuple[object, ...]:
    """What its file of state says, and which batches each epoch has."""
    state = checkpoint.state_file
    try:
        logs = [
            checkpoint.epoch_folder(epoch) / log
            for epoch in checkpoint.epochs_begun()
            for log in ("offsets", "commits")
        ]
        names = [(str(log), sorted(names_in(log)) if log.is_dir() else None) for log in logs]
        return state.read_bytes() if state.exists() else None, names
    except OSError as error:  # what may not be read is a finding of its own
        return (type(error),)
