"""Ends an update without work before a JVM is started."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from typing import Any

from headwater.contract.arguments import RunArguments
from headwater.graph.pipeline_project import PipelineProject
from headwater.updates.news import news_for
from headwater.updates.quiet_update import record_quiet_update
from headwater_airflow.forms.selection import Selection

_log = logging.getLogger(__name__)


def report_without_news(
    project: PipelineProject, selection: Selection, request: str, requested_at: datetime | None = None
) -> dict[str, Any] | None:
    """Record and return the report of an update that had nothing to do; None where it has to be run.

    ``selection``: what somebody asked for; it is run whatever has moved. ``requested_at``: the start of the run.
    """
    started = time.monotonic()
    arguments = RunArguments(
        str(project.folder),
        tables=selection.tables,
        full_refresh=selection.full_refresh,
        full_refresh_all=selection.full_refresh_all,
        flows=selection.flows,
        reset_checkpoint=selection.reset_checkpoint,
        refresh_failed=selection.refresh_failed,
        request_id=request,
        requested_at=requested_at,
    )
    verdict = news_for(project, arguments)
    if verdict is not None and verdict.unexpected:
        _log.warning("Starting Spark for %s: %s.", project.pipeline_id, "; ".join(verdict.reasons))
    if verdict is None or verdict.moved or verdict.manifest is None:
        return None
    return record_quiet_update(project, verdict.manifest, arguments, started, verdict.reasons).as_dict()
