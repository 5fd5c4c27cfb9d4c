"""Watches the files of a running pipeline, and opens what has taken their place."""

from __future__ import annotations

from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.updates.definition_watch import DefinitionWatch
from headwater_spark.loader.compilation import compile_source
from headwater_spark.loader.source_text import read_sources
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


def definition_watch(pipeline: ResolvedPipeline) -> DefinitionWatch:
    """A watch over the definition of a pipeline that runs."""
    project = pipeline.project
    return DefinitionWatch(
        pipeline.manifest.source_hash,
        lambda: opened_again(project).source_hash(),
        lambda: _compile(opened_again(project)),
    )


def opened_again(project: PipelineProject) -> PipelineProject:
    """The pipeline as it lies on disk now, with the roots and parameters of before; raises InvalidPipeline."""
    return open_project(
        project.folder,
        storage=project.storage,
        warehouse=project.warehouse,
        parameters=project.parameters,
        environment=project.environment,
        alone=True,
    )


def _compile(project: PipelineProject) -> None:
    for path in project.source_files():
        for unit in read_sources(path):
            if unit.language == "python":
                compile_source(unit)
