"""The record of what an operator did, where the process died between doing it and recording it.

Every command that takes the pipeline's lease and changes something, and every update, records first what an earlier one left.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from headwater.checkpoints.begun_action import BegunAction, begun_action, end_action
from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.layout import flow_checkpoint
from headwater.event_log.reader import has_user_action
from headwater.event_log.user_actions import DISCARD
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.quarantine.location import quarantine_location
from headwater.quarantine.table import marked_at

_LATE = "The process died before it could record this; what came after it did."


def record_begun(project: PipelineProject) -> None:
    """Record what an earlier command did and did not record; whoever calls it holds the lease.

    Raises:
        FlowStateDamaged: what was written down of it can't be read.
        StorageNotReadable: what it did can't be known for now.
    """
    action = begun_action(project.state_folder).record
    if action is None:
        return
    done = _discarded(project, action) if action.details["action"] == DISCARD else _repaired(project, action)
    if done is not None and not has_user_action(project.state_folder, action.action_id):
        with EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, action.action_id
        ) as events:
            events.emit(
                "user_action",
                f"{done.message} {_LATE}",
                level="WARN",
                flow=done.flow,
                dataset=done.dataset,
                epoch=done.epoch,
                details={"user_action": {**done.details, "recorded_late": True}},
            )
    end_action(project.state_folder, action.action_id)


def record_left(project: PipelineProject) -> None:
    """As ``record_begun``, for who has nothing else to do: the lease is taken where something is left; raises UpdateInProgress, too."""
    if begun_action(project.state_folder).record is not None:
        with project.lease(f"record-{uuid.uuid4()}"):
            record_begun(project)


def _repaired(project: PipelineProject, action: BegunAction) -> BegunAction | None:
    """The repair with the epoch that it opened; None where it opened none.

    As it was begun where that can't be known: one in place may have been done in part, and a damaged ``flow.json`` says no epoch.
    """
    assert action.flow is not None
    if action.epoch is None:
        return action
    try:
        state = flow_checkpoint(project.state_folder, action.dataset, action.flow).surviving_state()
    except (
        FlowStateDamaged
    ):  # a finding of who starts the flow, and no reason to keep all others from starting
        return action
    if state is None or state.epoch == action.epoch:
        return None
    message = f"{action.message} Epoch {state.epoch} is live since."
    return replace(
        action, epoch=state.epoch, message=message, details={**action.details, "epoch": state.epoch}
    )


def _discarded(project: PipelineProject, action: BegunAction) -> BegunAction | None:
    """The discard with the number of rows that it marked; None where it marked none."""
    manifest, at = read_manifest(project.state_folder / FILE_NAME), action.details["at"]
    known = manifest is not None and any(entry.name == action.dataset for entry in manifest.datasets)
    table = quarantine_location(manifest, project.warehouse, action.dataset) if manifest and known else None
    rows = marked_at(table, datetime.fromisoformat(at)) if table is not None else 0
    if not rows:
        return None
    return replace(action, message=f"{rows} {action.message}", details={**action.details, "rows": rows})
