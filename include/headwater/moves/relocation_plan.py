"""The plan of giving a pipeline other roots: what is copied where, what stays, and what is refused before anything is written."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from headwater.checkpoints.conditions import NameTaken
from headwater.checkpoints.guarded_files import Guarded
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.checkpoints.relocation_note import (
    Relocation,
    read_note,
    refuse_relocated,
    removal_of,
    removal_of_copy,
)
from headwater.checkpoints.table_move import refuse_unfinished
from headwater.definitions.dataset import DatasetKind, quarantine_folder
from headwater.delta_log.conditions import log_unreadable
from headwater.delta_log.table_history import table_exists
from headwater.errors import RefusedForSafety, UnknownDataset, UsageError
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.graph.table_places import refuse_around_tables
from headwater.moves.stored_folders import is_there
from headwater.quarantine.table import is_quarantine
from headwater.storage.delta_tables import table_log
from headwater.storage.place import Place, is_below, is_url, near, parts_below
from headwater.storage.walking import contents_below

# Of one machine, or of this very moment: they are not copied, and may be at a place where nothing of a pipeline is. So may what a
# process has left of one that died while it wrote it.
_OWN = re.compile(
    r"update\.lease.*|\.probe-.*|(stop|driver|relocation)\.json|system/folders\.json"
    r"|(\.(stop|driver|relocation)|system/\.folders)\.json\.[0-9a-f]{12}"
)


@dataclass(frozen=True)
class Tree:
    """A folder and where it is copied to. ``files`` and ``size`` (bytes): what is in it."""

    source: Place
    target: Place
    files: int
    size: int


@dataclass(frozen=True)
class RelocationPlan:
    """What is copied, tables first. ``old``, ``new``: the notes at both places as they were before it.

    ``stay``: tables outside of the warehouse; ``resumed``: an earlier run began it.
    """

    note: Relocation
    trees: tuple[Tree, ...]
    old: Guarded[Relocation]
    new: Guarded[Relocation]
    stay: tuple[str, ...] = ()
    resumed: bool = False

    @property
    def is_copied(self) -> bool:
        """Whether the old place is closed already: all is at the new one, which may have got more since, and only has to be opened."""
        return self.old.record is not None

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        note = self.note
        return {
            "from": {"storage": note.storage, "warehouse": note.warehouse},
            "to": {"storage": note.to_storage, "warehouse": note.to_warehouse},
            "folders": [
                {"from": str(tree.source), "to": str(tree.target), "files": tree.files, "size": tree.size}
                for tree in self.trees
            ],
            "stay": list(self.stay),
            "resumed": self.resumed,
        }

    def __str__(self) -> str:
        if self.is_copied:
            return (
                f"The pipeline is at {self.note.to_storage}, whole: an earlier run copied it, and did not open it to updates.\n"
                "  1. open it\n  lost: no rows\n  doubled: no rows"
            )
        steps = [
            *(
                f"copy {tree.source} to {tree.target}: {tree.files} files, {tree.size} bytes"
                for tree in self.trees
            ),
            "compare every copy with its original",
            f"leave a note in {self.trees[-1].source} that the pipeline is at the new place; nothing there is removed",
        ]
        lines = [f"The pipeline goes from {self.note.storage} to {self.note.to_storage}:"]
        lines += [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]
        lines += ["  lost: no rows\n  doubled: no rows"]
        if self.stay:
            lines.append(f"  Tables with a place of their own stay there: {', '.join(self.stay)}.")
        if self.note.warehouse != self.note.to_warehouse:
            lines.append(
                "  Whoever else reads these tables has to be given the new place: the old copies get no more rows."
            )
        if self.resumed:
            lines.append("  An earlier run began this and did not end it.")
        return "\n".join(lines)


def plan_relocation(source: PipelineProject, target: PipelineProject, command: str) -> RelocationPlan:
    """The plan; changes nothing.

    Args:
        source: the pipeline with its roots of now.
        target: the same pipeline with its new roots.
        command: how to repeat the request.

    Raises:
        UsageError: storage stays where it is, or one root lies inside another.
        UnknownDataset: no update has filled anything.
        PipelineRelocated: it has left already.
        MoveUnfinished, RefusedForSafety: a table is half-way to another name, rows are being replaced, or a file of a table lies
            outside of it.
        SourceUnreachable: the log of a table can't be read.
        TableOwned: a table was dropped here, and another pipeline has filled it since.
        NameTaken: something is at the new place, as of a relocation that was given up; or an earlier try copied a table that has another name now, or is dropped.
    """
    _check_roots(source, target)
    refuse_unfinished(source.state_folder)
    note = Relocation(
        str(uuid.uuid4()),
        str(source.storage),
        str(source.warehouse),
        str(target.storage),
        str(target.warehouse),
        command,
    )
    old, new = read_note(source.state_folder), read_note(target.state_folder)
    begun = new.record
    resumed = begun is not None and not begun.left and begun.is_the_same(note)
    if old.record is not None and not (resumed and old.record.left and old.record.is_the_same(note)):
        # Else the old place is closed already, and the new one is still to be opened.
        refuse_relocated(source.state_folder)
    manifest = read_manifest(source.state_folder / FILE_NAME)
    if manifest is None:
        raise UnknownDataset(
            "No update of this pipeline has filled a table: there is nothing to take along.",
            where=source.state_folder,
            remedy="Run it with the new roots.",
        )
    if any(pending_replacements(source.state_folder)):
        raise RefusedForSafety(
            "A backfill replaces rows, or was killed while it did.",
            where=source.state_folder,
            remedy="Wait until it has ended; what a killed one left, the next update ends: headwater run PIPELINE_DIR",
        )
    refuse_foreign_tables(source, manifest)
    trees = tuple(_trees(source, target, manifest))
    if begun is not None and not begun.left and not resumed:
        raise _given_up(begun, new)
    for tree in trees:
        _check_inside(tree.source)
        if not resumed:
            _check_free(tree, new)
    stay = [entry.name for entry in manifest.datasets if entry.location and _is_outside(entry.location)]
    kept = begun if resumed and begun is not None else note
    if old.record is None:  # else nothing is copied any more
        _check_left_over(kept, trees, target)
        kept = replace(kept, copied=tuple(str(tree.target) for tree in trees))
    return RelocationPlan(kept, trees, old, new, tuple(stay), resumed)


def is_copied(file: Place, tree: Tree, state_folder: Place) -> bool:
    """Whether a file of a tree goes along."""
    on_disks = isinstance(tree.source, Path) and isinstance(tree.target, Path)
    if not on_disks and file.name.startswith(".") and file.name.endswith(".crc"):
        return False  # Hadoop's checksums of a disk would be left over on a store, where nobody keeps them up
    return tree.source != state_folder or _OWN.fullmatch("/".join(parts_below(file, tree.source))) is None


def _check_roots(source: PipelineProject, target: PipelineProject) -> None:
    old = (source.storage, source.warehouse)
    # The warehouse may stay, the storage may not.
    new = [target.storage, *([target.warehouse] if target.warehouse != source.warehouse else [])]
    for before, after in product(old, new):
        if is_below(before, after) or is_below(after, before):
            raise UsageError(
                f"A pipeline can't be taken to {after}: {before} is one of its places now.",
                remedy="Name another place as --to-storage. The warehouse may stay where it is, the storage may not.",
            )


def _is_outside(location: str) -> bool:
    return location.startswith("/") or is_url(location)


def _trees(source: PipelineProject, target: PipelineProject, manifest: Manifest) -> Iterator[Tree]:
    if source.warehouse != target.warehouse:
        for entry in manifest.datasets:
            if entry.location is None or entry.kind is DatasetKind.SINK or _is_outside(entry.location):
                continue
            before, after = source.warehouse / entry.location, target.warehouse / entry.location
            if table_exists(before):
                refuse_around_tables(before)
                yield _tree(before, after)
            kept_out = before.with_name(quarantine_folder(before.name))
            if is_quarantine(kept_out):
                yield _tree(kept_out, after.with_name(quarantine_folder(after.name)))
    yield _tree(source.state_folder, target.state_folder)


def _tree(before: Place, after: Place) -> Tree:
    sizes = [about.st_size for _, about in contents_below(before)]
    return Tree(before, after, len(sizes), sum(sizes))


def _check_inside(folder: Place) -> None:
    """A clone names files of another table by their whole paths: its copy would still need them."""
    if not table_exists(folder):
        return
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        paths: list[str] = pa.table(table_log(folder).get_add_actions())["path"].to_pylist()
    except DeltaError as error:
        raise log_unreadable(error, folder) from None
    outside = next((path for path in paths if _is_outside(path) or path.startswith("file:")), None)
    if outside is not None:
        raise RefusedForSafety(
            f"A file of this table lies outside of its folder: {outside}.",
            where=folder,
            remedy="Make it a table of its own first: CREATE OR REPLACE TABLE ... AS SELECT, or a deep copy.",
        )


def _check_left_over(note: Relocation, trees: tuple[Tree, ...], target: PipelineProject) -> None:
    """Refuse rows that would turn up at the new place as those of a table that has gone; another pipeline's may lie there since."""
    now = {str(tree.target) for tree in trees}
    earlier = (near(target.warehouse, text) for text in note.copied if text not in now)
    left = [folder for folder in earlier if is_there(folder)]
    if left:
        raise NameTaken(
            "An earlier try of this relocation copied a table that has another name or another pipeline now, or is dropped.",
            where=left[0],
            remedy=f"Of what it left, {removal_of([str(folder) for folder in left])}; then run the same command again. Or choose another place.",
        )


def _given_up(begun: Relocation, new: Guarded[Relocation]) -> NameTaken:
    return NameTaken(
        f"A relocation from {begun.storage} was on its way here, and was killed or is at work: what it has copied is at the new place.",
        where=new.file,
        remedy=f"If it was given up, {removal_of_copy(begun, new.file.parent)}; then run the same command again. Or choose another place.",
    )


def _check_free(tree: Tree, new: Guarded[Relocation]) -> None:
    own = tree.target == new.file.parent
    there = (
        file
        for file, _ in contents_below(tree.target)
        if not (own and _OWN.fullmatch("/".join(parts_below(file, tree.target))))
    )
    taken = next(there, None)
    if taken is not None or (own and new.record is not None):
        raise NameTaken(
            "Something is at the new place already.",
            where=taken or new.file,
            remedy="Choose another place, or remove what is there.",
        )
