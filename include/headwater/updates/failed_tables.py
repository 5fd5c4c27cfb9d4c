"""What the last update left undone: tables whose flows did not complete, and those that read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult
from headwater.event_log.reader import flow_results
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection, ordered

_FINE = (FlowStatus.COMPLETED, FlowStatus.EXCLUDED)


def with_failed(project: PipelineProject, manifest: Manifest, selection: Selection) -> Selection:
    """The selection with the tables that ``refresh_failed`` means; as it is where that is not asked for."""
    if not selection.refresh_failed:
        return selection
    return replace(selection, tables=failed_tables(manifest, flow_results(project.state_folder)))


def failed_tables(manifest: Manifest, results: Iterable[FlowResult]) -> tuple[str, ...]:
    """The tables and sinks to refresh, each after those that it reads.

    A flow that failed, was stopped or left out because of another, or has no end (its driver was killed) did not complete.
    Flows and tables that the pipeline no longer has are left out.

    Args:
        manifest: the graph as it is now.
        results: of all flows of the last update.
    """
    left = {result.flow for result in results if result.state not in _FINE}
    chosen = {flow.target for flow in manifest.flows if flow.name in left}
    tables = []
    for name in ordered(manifest):
        if name in chosen or not chosen.isdisjoint(manifest.upstream(name)):
            chosen.add(name)
            tables.append(name)
    return tuple(tables)
