"""The manifest that the reading verbs use."""

from __future__ import annotations

import logging

from headwater.errors import ManifestNotFound
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject

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
