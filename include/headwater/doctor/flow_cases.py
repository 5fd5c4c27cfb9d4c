"""The flows that a verb applies to."""

from __future__ import annotations

from headwater.checkpoints.relocation_note import refuse_relocated
from headwater.checkpoints.table_move import refuse_unfinished
from headwater.doctor.flow_case import FlowCase
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.stored_manifest import stored_manifest


def flow_cases(
    project: PipelineProject, flow: str | None = None, *, deep: bool = False, views: bool = False
) -> list[FlowCase]:
    """The pipeline's flows that keep a position, or the one that is named; with ``views``, those of materialized views as well.

    Raises:
        ManifestNotFound: where the graph was never resolved.
        UnknownDataset: where there is no such flow.
    """
    manifest = stored_manifest(project)
    cases = [FlowCase(project, manifest, entry, deep) for entry in manifest.flows]
    if flow is None:
        stored = {entry.name for entry in manifest.outputs}
        return [
            case
            for case in cases
            if (case.flow.streaming or case.flow.once or views) and case.flow.target in stored
        ]
    chosen = known_name(manifest, flow, (case.flow.name for case in cases), "flow")
    return [case for case in cases if case.flow.name == chosen]


def refuse_half_way(project: PipelineProject) -> None:
    """Raise MoveUnfinished or PipelineRelocated where a table, or the pipeline, is half-way to another place, or has left this one."""
    refuse_unfinished(project.state_folder)
    refuse_relocated(project.state_folder)


def named_case(project: PipelineProject, flow: str) -> FlowCase:
    """The flow of a name; raises UnknownDataset where there is none."""
    return flow_cases(project, flow)[0]
