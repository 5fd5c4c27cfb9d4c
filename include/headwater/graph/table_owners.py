"""One pipeline owns a table: others may not append to it, refill it, maintain it, or drop it.

Decision 0099.
"""

from __future__ import annotations

from collections.abc import Collection

from headwater.checkpoints.conditions import TableOwned
from headwater.checkpoints.table_move import is_free
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.delta_log.table_history import last_pipeline, table_exists
from headwater.graph.manifest import FILE_NAME, DatasetEntry, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.place import Place, located


def refuse_foreign_tables(
    project: PipelineProject,
    manifest: Manifest,
    only: Collection[str] | None = None,
    *,
    before: Manifest | None = None,
) -> None:
    """Raise TableOwned where a table was filled by another pipeline, and this one has never owned it.

    A table's commits name the pipeline that made them. One that was moved here (``headwater move``) keeps the names in its
    log, and is recognised by what is in this pipeline's storage.

    Args:
        manifest: the graph as the sources declare it now.
        only: look at these datasets alone.
        before: the manifest of the last update, where it was read already.
    """
    before = before or read_manifest(project.state_folder / FILE_NAME)
    owned = set[tuple[str, str | None]]()
    if before is not None:
        owned = {(e.name, e.location) for e in before.outputs if e.name not in before.dropped}
    for entry in manifest.outputs:
        if (
            entry.location is None
            or entry.kind is DatasetKind.SINK
            or (only is not None and entry.name not in only)
        ):
            continue
        if (entry.name, entry.location) in owned or not is_free(
            project.state_folder / "checkpoints" / entry.name
        ):
            continue
        _check(project, entry, located(project.warehouse, entry.location))


def _check(project: PipelineProject, entry: DatasetEntry, table: Place) -> None:
    owner = last_pipeline(table) if table_exists(table) else None
    if owner is None or owner == project.pipeline_id:
        return
    name = DatasetName.parse(entry.name, catalog=project.spec.catalog, schema=project.spec.schema)
    full = name.location.replace("/", ".")
    raise TableOwned(
        f"The table {entry.name!r} belongs to the pipeline {owner!r}: {project.pipeline_id!r} would write beside it, and a full "
        f"refresh would remove its rows.",
        where=entry.defined_at or table,
        remedy=f"Give the table another name or schema; or have this pipeline own it: headwater move OWNER_DIR {full} "
        f"--to {project.folder.name} (OWNER_DIR: the folder of {owner!r}); or drop it there.",
    )
