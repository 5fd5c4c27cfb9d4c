"""Whether each flow could go on from its checkpoint: a fast check, cheap enough to repeat every few seconds."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.checkpoints.layout import FlowCheckpoint, FlowState, flow_checkpoint
from headwater.checkpoints.offsets import BatchOffsets, committed_at, committed_offsets, query_id
from headwater.delta_log.commits import commit_versions
from headwater.delta_log.versions import table_head
from headwater.errors import CheckpointUnreadable, HeadwaterError, SourceUnreachable
from headwater.graph.manifest import FlowEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.fingerprint import source_table
from headwater.storage.conditions import StoreUnreachable


class Health(StrEnum):
    """The state of a checkpoint."""

    HEALTHY = "healthy"
    NEW = "new"
    SICK = "sick"


@dataclass(frozen=True)
class CheckpointHealth:
    """A flow's live checkpoint. ``problem`` says what is wrong with a sick one; ``age``: seconds since the last batch."""

    flow: str
    dataset: str
    health: Health
    epoch: int = 0
    last_batch: int | None = None
    age: float | None = None
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The health as JSON values."""
        return {**asdict(self), "health": str(self.health)}


def pipeline_health(project: PipelineProject, manifest: Manifest) -> list[CheckpointHealth]:
    """The checkpoint of every stream, in the manifest's order. Flows that never ran are new, not sick.

    Raises:
        StoreUnreachable: the store does not answer.
    """
    return [
        _look(project, manifest, flow) for flow in manifest.output_flows if flow.streaming and not flow.once
    ]


def _look(project: PipelineProject, manifest: Manifest, flow: FlowEntry) -> CheckpointHealth:
    checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
    try:
        state = checkpoint.surviving_state()
    except CheckpointUnreadable:
        return CheckpointHealth(flow.name, flow.target, Health.SICK, problem="flow.json is damaged")
    except StoreUnreachable:
        raise  # it is not sick for that
    except (OSError, HeadwaterError) as error:
        why = getattr(error, "what", None) or error
        return CheckpointHealth(
            flow.name, flow.target, Health.SICK, problem=f"flow.json can't be read: {why}"
        )
    if state is None:
        return CheckpointHealth(flow.name, flow.target, Health.NEW)
    folder = checkpoint.epoch_folder(state.epoch)
    try:
        offsets = committed_offsets(folder)
        identity = query_id(folder)
    except (CheckpointUnreadable, StorageNotReadable) as error:
        damage = f"{error.what} ({_below(checkpoint, error.where)})"
        return CheckpointHealth(flow.name, flow.target, Health.SICK, state.epoch, problem=damage)
    age = None
    if offsets is not None and (committed := committed_at(folder, offsets.batch_id)) is not None:
        age = max(0.0, time.time() - committed)
    problem = _mismatch(project, manifest, flow, state, has_position=offsets is not None)
    if problem is None and offsets is not None:
        problem = _stale(project, flow, offsets)
    if offsets is not None and identity is None:
        problem = "its metadata file is gone, so Spark would take it for another query"
    health = Health.SICK if problem else Health.HEALTHY if offsets else Health.NEW
    last = offsets.batch_id if offsets else None
    return CheckpointHealth(flow.name, flow.target, health, state.epoch, last, age, problem)


def _mismatch(
    project: PipelineProject, manifest: Manifest, flow: FlowEntry, state: FlowState, *, has_position: bool
) -> str | None:
    """How position and table do not match, as the preflight checks of the next update would find it."""
    if state.sink_id is None or manifest.dataset(flow.target).location is None:
        return None
    try:
        head = table_head(manifest.table_path(project.warehouse, flow.target))
    except SourceUnreachable as error:
        return error.what
    if head is None:
        return "its table is not there any more"
    if head.table_id != state.sink_id and state.pending_epoch is None:
        return "its table was recreated by something else"
    if not has_position and state.completed:
        return "the checkpoint is gone, but the table has been written to"
    return None


def _stale(project: PipelineProject, flow: FlowEntry, offsets: BatchOffsets) -> str | None:
    """Which table's log no longer has what the checkpoint would read next, as the next update would find it."""
    streams = [source for source in flow.sources if source.streaming]
    for index, source in enumerate(streams[: len(offsets.sources)]):
        table, position = source_table(source, project.warehouse), offsets.source(index)
        if table is None or not isinstance(position, dict) or position.get("isStartingVersion"):
            continue
        version = position.get("reservoirVersion")
        if not isinstance(version, int):
            continue
        kept = commit_versions(table)
        if kept and kept[0] > version:
            name = source.name or source.location or table.name
            return f"it is stale: version {version} of {name}, where it reads on, has left that table's log, which begins at {kept[0]}"
    return None


def _below(checkpoint: FlowCheckpoint, path: str) -> str:
    return path.removeprefix(f"{checkpoint.folder}/")
