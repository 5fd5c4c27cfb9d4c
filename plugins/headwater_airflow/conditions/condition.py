"""What every condition has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.errors import InvalidSpec
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.roots import pipeline_project


@dataclass(frozen=True)
class Sighting:
    """What one look found. ``summary`` is a sentence; ``payload``, plain JSON values, becomes the sensor's result."""

    met: bool
    summary: str
    payload: Mapping[str, Any] = field(default_factory=dict)


class Condition(ABC):
    """Something to wait for. Subclasses are frozen dataclasses of plain JSON values; ``look`` may block on files."""

    @abstractmethod
    def look(self) -> Sighting:
        """Look once.

        Raises:
            HeadwaterError: if waiting is in vain (terminal), or the state can't be read now (transient).

        """

    def arguments(self) -> dict[str, Any]:
        """The condition's values, for a trigger."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # all subclasses are dataclasses


def observed_manifest(project: PipelineProject) -> Manifest | None:
    """The manifest of the last update, which knows where things are; before the first, the committed one."""
    return read_manifest(project.state_folder / FILE_NAME) or read_manifest(project.folder / FILE_NAME)


def observed_pipeline(pipeline: str, dataset: str | None) -> tuple[PipelineProject, Manifest | None]:
    """The pipeline and its manifest, None before it has one.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or no such table in it.

    """
    project = pipeline_project(pipeline)
    manifest = observed_manifest(project)
    if manifest is not None and dataset is not None:
        tables = [entry.name for entry in manifest.tables]
        if dataset not in tables:
            raise InvalidSpec(
                f"{pipeline} has no table {dataset!r}.",
                where=project.spec_file,
                remedy=f"It has: {', '.join(tables)}.",
            )
    return project, manifest


def not_run_yet(pipeline: str) -> Sighting:
    """The sighting of a pipeline without a manifest."""
    return Sighting(met=False, summary=f"{pipeline} has not run yet.")
