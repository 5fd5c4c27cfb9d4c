"""Ends an update that would find nothing, before a JVM is started."""

from __future__ import annotations

from typing import Any

from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.news import has_news


def report_without_news(project: PipelineProject, request: str) -> dict[str, Any] | None:
    """Record and return the report of an update that had nothing to do; None where it has to be run."""
    verdict = has_news(project)
    if verdict.moved:
        return None
    return {"update_id": None, "state": "COMPLETED", "flows": [], "request_id": request}
