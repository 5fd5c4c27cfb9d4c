"""Carrying a relocation out: the note at the new place, copies, comparison, the note at the old place; each step can be repeated.

From its first step to its last the new place can't be written to by anybody else, and from the last but one the old place can't either:
a crash between any two leaves one that can, or none, and never both. Nothing at the old place is removed.

Decision 0192.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from headwater.checkpoints.checksums import agrees, checksum_file
from headwater.checkpoints.relocation_note import end_note, write_note
from headwater.checkpoints.whole_folders import copy_durably
from headwater.doctor.begun_actions import record_begun
from headwater.errors import RefusedForSafety, StorageFailed
from headwater.event_log.reader import has_user_action
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.moves.relocation_plan import RelocationPlan, Tree, is_copied, plan_relocation
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import contents_below, unchecked

# Bytes. Positions, states of flows and commits are smaller; larger files are compared by size.
_COMPARED = 65536

Step = Callable[[], None]


def relocate(source: PipelineProject, target: PipelineProject, command: str) -> RelocationPlan:
    """Carry a request out, or finish what an earlier run of it began; arguments as of ``plan_relocation``.

    Raises:
        UpdateInProgress: where an update runs; nothing was changed.
        StorageFailed: where a file can't be read or written; the same command goes on from there.
        RefusedForSafety: a copy is not what its original is; the old place is still the one that counts.
        LeaseLost: this process stood still for so long that another one may write; the same command goes on from there.
        All that ``plan_relocation`` raises; nothing was changed.
    """
    with ExitStack() as stack:
        holder = f"relocate-{target.pipeline_id}"
        leases = [stack.enter_context(side.lease(holder, moving=True)) for side in (source, target)]
        # Only now nothing moves any more.
        plan = plan_relocation(source, target, command)
        if not plan.is_copied:
            record_begun(source)

        def check() -> None:
            for lease in leases:
                lease.check()

        for step in steps(plan, source, target, check):
            check()
            try:
                step()
            except OSError as error:
                check()  # what is gone may be another process's doing
                raise StorageFailed(
                    f"The pipeline could not be copied: {error.strerror or error}.",
                    where=error.filename,
                    remedy=f"Make room, or give the rights, and run the same command again: {command} --yes",
                ) from None
    return plan


def steps(
    plan: RelocationPlan, source: PipelineProject, target: PipelineProject, check: Step = unchecked
) -> Iterator[Step]:
    """The steps, in their order; each may be done twice. ``check``: raises where a lease is lost, for steps of many writes."""
    if plan.is_copied:
        yield lambda: end_note(target.state_folder, plan.note)
        return
    yield lambda: write_note(plan.new, plan.note)
    yield lambda: _record(plan, source)
    for tree in plan.trees:
        yield lambda tree=tree: _copy(tree, source.state_folder, check)  # type: ignore[misc]
    for tree in plan.trees:
        yield lambda tree=tree: compare(tree, source.state_folder)  # type: ignore[misc]
    yield lambda: write_note(plan.old, replace(plan.note, left=True, copied=()))
    # Last: before the old place is closed, the new one is.
    yield lambda: end_note(target.state_folder, plan.note)


def _copy(tree: Tree, state_folder: Place, check: Step) -> None:
    if tree.source == state_folder and isinstance(state_folder, Path):
        _check_checksums(tree, state_folder)
    originals = dict(_files(tree, state_folder))
    for name, (file, _) in dict(_copies(tree, state_folder)).items():
        if name not in originals:
            check()
            file.unlink(missing_ok=True)  # of an earlier try; its original is gone
    _remove_empty(tree.target)
    there = {name: size for name, (_, size) in _copies(tree, state_folder)}

    def keep(file: Place) -> bool:
        name = "/".join(parts_below(file, tree.source))
        # Files of rows never change: an earlier run has copied them.
        done = file.suffix == ".parquet" and there.get(name) == originals.get(name, (file, -1))[1]
        return not done and is_copied(file, tree, state_folder)

    copy_durably(tree.source, tree.target, keep, check)


def _remove_empty(folder: Place) -> None:
    """Remove folders that an earlier try made on a disk: an epoch's whose table has gone since would be one that has read nothing."""
    if isinstance(folder, Path):
        for below in (*sorted(folder.rglob("*/"), reverse=True), folder):
            with suppress(OSError):  # it is not empty
                below.rmdir()


def _check_checksums(tree: Tree, state_folder: Place) -> None:
    for file, _ in contents_below(tree.source):
        if is_copied(file, tree, state_folder) and checksum_file(file).exists() and not agrees(file):
            raise RefusedForSafety(
                "A file is not what its checksum says: its copy would be damaged, and nothing would show it.",
                where=file,
                remedy="Repair it here first: headwater checkpoints diagnose PIPELINE_DIR",
            )


def compare(tree: Tree, state_folder: Place) -> None:
    """Raise RefusedForSafety where a copy is not what its original is, is missing, or has none."""
    originals, copies = dict(_files(tree, state_folder)), dict(_copies(tree, state_folder))
    different = sorted(originals.keys() ^ copies.keys())
    different += [
        name for name in sorted(originals.keys() & copies.keys()) if not _same(originals[name], copies[name])
    ]
    if different:
        raise RefusedForSafety(
            f"{len(different)} of {len(originals)} copies are not what their originals are, {different[0]} is the first.",
            where=tree.target,
            remedy="The old place is still the one that counts. Run the same command again; if it stays, see who else writes to "
            "either place.",
        )


def _same(original: tuple[Place, int], copy: tuple[Place, int]) -> bool:
    if original[1] != copy[1]:
        return False
    return original[1] > _COMPARED or original[0].read_bytes() == copy[0].read_bytes()


def _files(tree: Tree, state_folder: Place) -> Iterator[tuple[str, tuple[Place, int]]]:
    for file, about in contents_below(tree.source):
        if is_copied(file, tree, state_folder):
            yield "/".join(parts_below(file, tree.source)), (file, about.st_size)


def _copies(tree: Tree, state_folder: Place) -> Iterator[tuple[str, tuple[Place, int]]]:
    turned = Tree(tree.target, tree.source, tree.files, tree.size)
    whole = tree.target if tree.source == state_folder else state_folder
    return _files(turned, whole)


def _record(plan: RelocationPlan, source: PipelineProject) -> None:
    """In the log that is about to be copied: a record that only the copy has would be lost by a second try."""
    note = plan.note
    if plan.resumed and has_user_action(source.state_folder, note.relocation_id):
        return
    with EventLogWriter(
        source.state_folder, source.pipeline_id, source.spec.name, note.relocation_id
    ) as events:
        events.emit(
            "user_action",
            f"The pipeline is taken from {note.storage} to {note.to_storage}.",
            level="WARN",
            details={"user_action": {"action": "RELOCATE", **plan.as_dict()}},
        )
