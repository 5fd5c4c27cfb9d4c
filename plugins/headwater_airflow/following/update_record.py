"""The event log's records about an update as a whole: reading them, and writing a missing end."""

from __future__ import annotations

import uuid
from typing import Any

from headwater.errors import FlowInterrupted
from headwater.event_log.dead_updates import close_flows
from headwater.event_log.details import FlowStatus, UpdateState, update_progress
from headwater.event_log.reader import events, flow_results
from headwater.event_log.update_summary import UpdateSummary, fold_updates
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.telemetry.otlp import metrics_export


def request_updates(project: PipelineProject, request: str) -> list[UpdateSummary]:
    """The updates under a request, one an attempt, oldest first."""
    kinds = ("create_update", "update_progress")
    return fold_updates(events(project.state_folder, request_id=request, event_type=kinds))


def newest_update(project: PipelineProject, request: str) -> UpdateSummary | None:
    """The newest update under a request, or None if no attempt got that far."""
    updates = request_updates(project, request)
    return updates[-1] if updates else None


def failed_flows(project: PipelineProject, update: UpdateSummary | None) -> list[dict[str, Any]]:
    """The record of each flow that failed in an update; one that was to start again in the same driver is no end."""
    if update is None:
        return []
    records = events(project.state_folder, update_id=update.update_id, event_type="flow_progress")
    return [
        record
        for record in records
        if (body := record["details"].get("flow_progress", {})).get("status") == FlowStatus.FAILED
        and "attempt" not in body
    ]


def record_silent_end(
    project: PipelineProject, request: str, update: UpdateSummary | None, message: str, *, will_retry: bool
) -> None:
    """Write the end of an update and of its flows where the driver could not: else they would seem to run forever."""
    if update is not None and update.ended is not None:
        return
    update_id = update.update_id if update is not None else str(uuid.uuid4())
    details = update_progress(UpdateState.FAILED)
    details["update_progress"]["will_retry"] = will_retry
    with (
        metrics_export() as metrics,
        EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, update_id, request
        ) as log,
    ):
        log.subscribe(metrics.offer)
        flows = flow_results(project.state_folder, update_id=update_id)
        close_flows(log, flows, will_retry=will_retry, error=FlowInterrupted(message))
        log.emit("update_progress", message, level="ERROR", details=details, error={"fatal": not will_retry})
