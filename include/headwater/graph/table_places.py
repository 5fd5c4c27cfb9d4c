"""No table lies inside another one: vacuum and drop of the outer one would take the inner one's files.

Names of one, two and three parts share one tree of folders: ``shop.orders`` is ``shop/orders``, and ``shop.orders.items`` (of a
catalog ``shop``) lies inside it. Folders are compared as they are on disk, so links and ``..`` count.

Decision 0134.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headwater.checkpoints.conditions import TableNested
from headwater.definitions.dataset import Dataset
from headwater.delta_log.table_history import table_exists
from headwater.errors import DuplicateDataset
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place as AnyPlace
from headwater.storage.place import is_below, located
from headwater.storage.walking import files_and_folders

LOG = "_delta_log"


@dataclass(frozen=True)
class Place:
    """A folder that is written to. ``what``: its role, in words; ``where``: the line that declares it."""

    path: AnyPlace
    what: str
    where: object = None


def declared_places(project: PipelineProject, datasets: Iterable[Dataset]) -> Iterator[Place]:
    """The folders of a pipeline's tables, sinks and quarantines, and of Headwater itself."""
    yield Place(project.storage / "pipelines", "Headwater's own storage")
    for dataset in datasets:
        table = dataset.table_location(project.pipeline_id)
        kept_out = dataset.quarantine_location(project.pipeline_id)
        if table is not None and _local(table):
            yield Place(located(project.warehouse, table), f"The table of {dataset.name!r}", dataset.location)
        if kept_out is not None and _local(kept_out):
            what = f"The quarantine of {dataset.name!r}"
            yield Place(located(project.warehouse, kept_out), what, dataset.location)


def refuse_around_sources(project: PipelineProject, places: Iterable[Place]) -> None:
    """Raise DuplicateDataset where the pipeline's own folder lies inside a table: vacuum would take its files."""
    folder = real(project.folder)
    for place in places:
        if place.where is not None and is_below(folder, real(place.path)):
            raise DuplicateDataset(
                f"{place.what} would lie around the pipeline's own folder.",
                where=place.where,
                remedy="Give it another path.",
            )


def refuse_overlaps(places: Iterable[Place]) -> None:
    """Raise DuplicateDataset where two places are one folder, or one lies inside the other."""
    taken: dict[AnyPlace, Place] = {}
    for place in places:
        folder = real(place.path)
        other = taken.setdefault(folder, place)
        if other is not place:
            raise DuplicateDataset(
                f"{place.what} and {_inline(other.what)} are one folder: {folder}.",
                where=_lines(place, other),
                remedy="Give one of them another path or name (<table>_quarantine is taken where rules quarantine); several "
                "flows may write to one table or sink.",
            )
    for folder, place in taken.items():
        outer = next((taken[above] for above in folder.parents if above in taken), None)
        if outer is not None:
            raise DuplicateDataset(
                f"{place.what} would lie inside {_inline(outer.what)}: {folder} is below {real(outer.path)}.",
                where=_lines(place, outer),
                remedy="Give one of them another path, schema or name. (shop.orders is the folder shop/orders, and "
                "shop.orders.items the folder shop/orders/items.)",
            )


def refuse_nested_on_disk(
    project: PipelineProject, manifest: Manifest, only: Collection[str] | None = None
) -> None:
    """Raise TableNested where a table, whoever writes it, lies above or below one of this pipeline's.

    Folders above are checked for every table; what lies below only where the table does not exist yet: the second one
    is refused, so nothing can appear below an existing table.

    Args:
        only: look at these datasets alone.
    """
    for entry in manifest.outputs:
        if only is not None and entry.name not in only:
            continue
        for folder in _folders(project, entry):
            path = real(folder)
            outer = next((above for above in path.parents if table_exists(above)), None)
            if outer is not None:
                raise _nested(entry, path, f"lies inside a table: {outer}", outer)
            if table_exists(path):
                continue
            inner = next(tables_below(path), None)
            if inner is not None:
                raise _nested(entry, path, f"would lie around a table: {inner}", inner)


def refuse_around_tables(folder: AnyPlace) -> None:
    """Raise TableNested where a table lies inside a folder that is about to be renamed or removed."""
    inner = next(tables_below(folder), None)
    if inner is not None:
        raise TableNested(
            f"A table lies inside the folder {folder}, and would go with it: {inner}.",
            where=inner,
            remedy="Rename that one first (headwater rename OWNER_DIR TABLE NEW), or drop it where it belongs.",
        )


def tables_below(folder: AnyPlace) -> Iterator[AnyPlace]:
    """The folders below one that hold a log of Delta's, outermost first; links are not followed."""
    if isinstance(folder, ObjectPath):
        yield from _stored_tables_below(folder)
        return
    for parent, names, _ in os.walk(folder):
        if LOG in names and Path(parent) != folder:
            yield Path(parent)
            names.clear()
        names[:] = sorted(name for name in names if name not in (LOG, "_change_data"))


def real(path: AnyPlace) -> AnyPlace:
    """The folder that a path leads to, without links and ``..``; also of one that is not there yet."""
    return Path(os.path.realpath(path)) if isinstance(path, Path) else path


def _stored_tables_below(folder: ObjectPath) -> Iterator[ObjectPath]:
    for name in sorted(files_and_folders(folder)[1]):
        if name in (LOG, "_change_data"):
            continue
        below = folder / name
        if (below / LOG).is_dir():
            yield below
        else:
            yield from _stored_tables_below(below)


def _folders(project: PipelineProject, entry: DatasetEntry) -> list[AnyPlace]:
    """Where a dataset's rows lie: its table, and the one for rows that its rules keep out."""
    return [
        located(project.warehouse, place)
        for place in (entry.location, entry.quarantine)
        if place and _local(place)
    ]


def _nested(entry: DatasetEntry, path: AnyPlace, how: str, other: AnyPlace) -> TableNested:
    return TableNested(
        f"The folder of {entry.name!r}, {path}, {how}. Vacuum and drop of the outer one would take the inner one's files.",
        where=entry.defined_at or other,
        remedy="Give the table another path, schema or name; or rename the other one where it belongs: "
        "headwater rename OWNER_DIR TABLE NEW",
    )


def _local(place: str) -> bool:
    return "://" not in place


def _lines(one: Place, other: Place) -> str:
    return ", and ".join(str(place.where) for place in (one, other) if place.where is not None)


def _inline(what: str) -> str:
    return what[:1].lower() + what[1:] if what.startswith("The ") else what
