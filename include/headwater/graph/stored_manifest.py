"""The manifest that the reading verbs use, and its replacement by who has the lease."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headwater.checkpoints.guarded_files import Guarded, write_guarded
from headwater.delta_log.table_history import table_exists
from headwater.errors import ManifestNotFound
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.atomic import read_record
from headwater.storage.place import Place

_log = logging.getLogger(__name__)


def stored_manifest(project: PipelineProject) -> Manifest:
    """The manifest of the last update, else the committed one; one that matches the sources before a stale one.

    Raises:
        ManifestNotFound: where there is neither.
    """
    paths = (project.state_folder / FILE_NAME, project.folder / FILE_NAME)
    manifests = [manifest for manifest in map(read_manifest, paths) if manifest is not None]
    if not manifests:
        raise ManifestNotFound(
            "The graph of this pipeline has not been resolved yet.",
            where=project.folder,
            remedy=f"Run `python -m headwater validate {project.folder}`, or an update.",
        )
    fitting = [manifest for manifest in manifests if manifest.fits(project)]
    if not fitting:
        about = {"pipeline": project.pipeline_id}
        _log.warning("The sources have changed since the manifest was written; run `validate`.", extra=about)
    chosen = (fitting or manifests)[0]
    if project.parameters and chosen.parameters_hash != project.parameters_hash():
        about = {"pipeline": project.pipeline_id}
        _log.warning(
            "The graph that is stored was resolved with other parameters than these: sources and tables below are those of that run. "
            "An update with these parameters resolves it again.",
            extra=about,
        )
    return chosen


def seen_manifest(state_folder: Place) -> tuple[Guarded[str], Manifest | None]:
    """The manifest of a pipeline's last update, and what it may be replaced as by ``replace_manifest``; errors as of ``read_manifest``."""
    file, tags = state_folder / FILE_NAME, list[str | None]()

    def read(place: Place) -> str:
        text, tag = read_record(place)
        tags.append(tag)
        return text

    manifest = read_manifest(file, read)
    return Guarded(file, None, next(iter(tags), None)), manifest


def with_dropped(manifest: Manifest, before: Manifest | None, project: PipelineProject) -> Manifest:
    """The manifest of an update that may leave tables out: what was dropped ``before`` and is not there again stays nobody's."""
    gone = tuple(
        name
        for name in (before.dropped if before is not None else ())
        if any(one.name == name and one.location is not None for one in manifest.outputs)
        and not table_exists(manifest.table_path(project.warehouse, name))
    )
    return manifest.model_copy(update={"dropped": gone}) if gone else manifest


def replace_manifest(seen: Guarded[str], manifest: Manifest, check: Callable[[], None]) -> None:
    """Write the manifest of who has the lease.

    ``check``: raises where the lease is lost; LeaseLost is raised, too, where another process has written a manifest since.
    """
    check()  # after the look: what is written depends on that nobody has been there since
    write_guarded(seen, manifest.to_json())
