"""The sources of a pipeline for who is going to run them: one without any is refused before Spark is started."""

from __future__ import annotations

from pathlib import Path

from headwater.errors import InvalidPipeline
from headwater.graph.pipeline_project import PipelineProject


def required_sources(project: PipelineProject) -> list[Path]:
    """The files that the libraries name; raises InvalidPipeline where there are none, InvalidSpec where one leaves the folder."""
    files = project.source_files()
    if not files:
        raise InvalidPipeline(
            "The pipeline has no source files.",
            where=project.spec_file,
            remedy="Put .py or .sql files into transformations/, or name yours under `libraries`.",
        )
    return files
