"""What was begun and not ended: a move of a table or of the pipeline, and a table that is gone while its checkpoint is there."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.checkpoints.conditions import TableGone
from headwater.checkpoints.layout import flow_checkpoint
from headwater.delta_log.table_history import table_exists
from headwater.doctor.flow_cases import refuse_half_way
from headwater.errors import HeadwaterError
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject


def half_way(
    project: PipelineProject, manifest: Manifest | None, suspects: Iterable[str]
) -> list[HeadwaterError]:
    """What is half-way, with the command that ends it. ``suspects``: the tables that may be gone."""
    try:
        refuse_half_way(project)
    except HeadwaterError as error:
        return [error]  # what is not there is elsewhere
    return [] if manifest is None else [_gone(project, manifest, name) for name in suspects if _is_gone(project, manifest, name)]  # fmt: skip


def _is_gone(project: PipelineProject, manifest: Manifest, dataset: str) -> bool:
    try:
        if table_exists(manifest.table_path(project.warehouse, dataset)):
            return False
        flows = (flow_checkpoint(project.state_folder, dataset, f.name) for f in manifest.flows_into(dataset))
        return any(flow.has_written() for flow in flows)
    except HeadwaterError:
        return False  # `diagnose` says so, and what else is wrong with the checkpoint


def _gone(project: PipelineProject, manifest: Manifest, dataset: str) -> TableGone:
    return TableGone(
        f"{dataset!r} has a checkpoint, and the table that it knows is not there: a drop was killed, or somebody removed it.",
        where=manifest.table_path(project.warehouse, dataset),
        remedy=f"End the drop: headwater drop PIPELINE_DIR {dataset} --yes; or fill it again: headwater run PIPELINE_DIR --full-refresh {dataset}",
    )
