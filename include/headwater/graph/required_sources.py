"""The sources of a pipeline for who is going to run them: one without any is refused before Spark is started."""

from __future__ import annotations

from pathlib import Path

from headwater.checkpoints.rights import first_denied, not_readable
from headwater.errors import InvalidPipeline
from headwater.graph.pipeline_project import PipelineProject


def required_sources(project: PipelineProject) -> list[Path]:
    """The files that the libraries name.

    Raises:
        InvalidPipeline: there are none.
        InvalidSpec: one leaves the folder.
        StorageNotReadable: a folder in which some may lie can't be looked into.
    """
    files = project.source_files()
    if not files:
        _refuse_closed(project.folder)
        raise InvalidPipeline(
            "The pipeline has no source files.",
            where=project.spec_file,
            remedy="Put .py or .sql files into transformations/, or name yours under `libraries`.",
        )
    return files


def _refuse_closed(folder: Path) -> None:
    """Patterns pass over folders that may not be read."""
    for place in sorted(folder.iterdir()):
        if place.is_dir() and (closed := first_denied(place)) is not None:
            raise not_readable(closed, "which source files the pipeline has")
