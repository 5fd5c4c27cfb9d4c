"""An update that found nothing new: recorded like any other, without Spark."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from headwater.contract.arguments import RunArguments
from headwater.contract.report import FlowReport, RunReport
from headwater.event_log import details
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.retention import keep_event_log
from headwater.event_log.writer import EventLogWriter
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metastore.following import follow_if_due
from headwater.telemetry.otlp import metrics_export

MESSAGE = "no source has moved since the last update"


def record_quiet_update(
    project: PipelineProject,
    manifest: Manifest,
    arguments: RunArguments,
    started: float,
    because: Sequence[str] = (),
) -> RunReport:
    """Write the events of an update in which every flow was up to date, and return its report.

    ``started``: on the monotonic clock, in seconds. ``because``: why there was nothing to do.
    """
    why = "; ".join(because) or MESSAGE
    update_id = str(uuid.uuid4())
    stored = {entry.name for entry in manifest.outputs}
    flows = [flow for flow in manifest.flows if flow.target in stored]
    with (
        metrics_export() as metrics,
        EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, update_id, arguments.request_id
        ) as log,
    ):
        log.subscribe(metrics.offer)
        created = details.create_update(
            requested_at=arguments.requested_at,
            parameters=project.shown_parameters,
            refresh_failed=arguments.refresh_failed,
        )
        log.emit("create_update", f"Update {update_id[:8]} was requested.", details=created)
        none = {"num_input_rows": 0, "num_output_rows": 0}
        body = details.flow_progress(FlowStatus.COMPLETED, metrics=none, dropped=0, quarantined=0)
        for flow in flows:
            message = f"Flow {flow.name} has no news: {why}."
            log.emit("flow_progress", message, flow=flow.name, dataset=flow.target, details=body)
        follow_if_due(project, manifest, log, update_id)
        message = f"Update {update_id[:8]} is COMPLETED: {why}."
        log.emit("update_progress", message, details=details.update_progress(UpdateState.COMPLETED))
    keep_event_log(project.state_folder, project.spec.event_log.retention_days)
    reports = tuple(FlowReport(flow.name, flow.target, "COMPLETED") for flow in flows)
    return RunReport(update_id, "COMPLETED", reports, time.monotonic() - started, why)
