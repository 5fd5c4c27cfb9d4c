"""Ends an update that would find nothing, before a JVM is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.selection import Selection


def report_without_news(
    project: PipelineProject, selection: Selection, tables: Sequence[str], request: str
) -> dict[str, Any] | None:
    """The report of an update that had nothing to do, or None where it has to be run.

    ``tables``: of a task that runs these only; a selection that somebody asked for is always run.
    """
    return None
