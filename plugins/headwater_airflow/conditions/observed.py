"""A pipeline that is looked at again and again: its files are read when they have changed."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.graph.manifest import FILE_NAME, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.place import Place
from headwater_airflow.conditions.condition import observed_manifest
from headwater_airflow.roots import pipeline_project

_Stamp = tuple[int, int, int] | None


@dataclass
class ObservedPipeline:
    """Opens a pipeline, and again where its spec or one of its manifests was written.

    Args:
        pipeline: the name of its folder.

    """

    pipeline: str
    _known: tuple[PipelineProject, Manifest | None, tuple[_Stamp, ...]] | None = None

    def read(self) -> tuple[PipelineProject, Manifest | None]:
        """The pipeline, and the manifest of its last update; before the first, the committed one.

        Raises:
            HeadwaterError: as ``pipeline_project`` and ``read_manifest`` do.

        """
        if self._known is None or self._known[2] != _stamps(self._known[0]):
            project = pipeline_project(self.pipeline, alone=True)
            stamps = _stamps(project)
            self._known = (project, observed_manifest(project), stamps)
        return self._known[:2]


def _stamps(project: PipelineProject) -> tuple[_Stamp, ...]:
    return tuple(
        _stamp(file)
        for file in (project.spec_file, project.folder / FILE_NAME, project.state_folder / FILE_NAME)
    )


def _stamp(file: Place) -> _Stamp:
    try:
        now = file.stat()
    except FileNotFoundError:
        return None
    return getattr(now, "st_ino", 0), now.st_mtime_ns, now.st_size
