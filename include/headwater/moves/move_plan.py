"""The plan of a rename or a move of a table: which folders go where, and what is refused before anything is changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.checkpoints.flow_identity import FlowIdentity, flow_identity
from headwater.checkpoints.guarded_files import Guarded
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import read_offsets
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.checkpoints.relocation_note import refuse_relocated
from headwater.checkpoints.table_move import (
    Place,
    TableMove,
    is_marked_by,
    moved_to,
    read_journal,
    unfinished,
)
from headwater.definitions.dataset import DatasetKind
from headwater.delta_log.table_history import table_exists
from headwater.errors import CheckpointUnreadable, RefusedForSafety, UnknownDataset, UsageError
from headwater.event_log.reader import has_user_action, last_batches
from headwater.event_log.user_actions import is_dropped
from headwater.graph.manifest import FILE_NAME, DatasetEntry, Manifest, read_manifest
from headwater.moves.move_request import Wish
from headwater.moves.moved_folders import (
    flow_folders,
    moved_folders,
    refuse_taken_places,
    renamed_flow,
    table_places,
)
from headwater.moves.stored_folders import weighed
from headwater.storage.place import Place as AnyPlace
from headwater.storage.place import located
from headwater.suggestions import did_you_mean, nearest


@dataclass(frozen=True)
class MovePlan:
    """A move and its description. ``resumed``: an earlier run began it; ``readers``: streams that go on.

    ``journals``: as they were before it, the target's first; ``copied``: of each folder on a store, how many objects are copied, and
    their bytes.
    """

    move: TableMove
    journals: tuple[Guarded[TableMove], ...]
    readers: tuple[str, ...] = ()
    resumed: bool = False
    copied: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_moved(self) -> bool:
        """Whether an earlier run has done all but opening the target: the old name may be that of another table by now."""
        return self.resumed and self.journals[-1].record is None

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        move = self.move
        return {
            "from": {"pipeline": move.source.pipeline, "dataset": move.source.dataset},
            "to": {"pipeline": move.target.pipeline, "dataset": move.target.dataset},
            "flows": dict(move.flows),
            "folders": [list(pair) for pair in move.folders],
            "readers": list(self.readers),
            "resumed": self.resumed,
            "copied": {
                "files": sum(files for files, _ in self.copied.values()),
                "size": sum(size for _, size in self.copied.values()),
            },
        }

    def __str__(self) -> str:
        move = self.move
        place = "" if move.within else f" of the pipeline {move.target.pipeline}"
        head = f"{move.source.dataset} becomes {move.target.dataset}{place}:"
        steps = [
            *(f"flow {before} becomes {after}" for before, after in move.flows.items() if before != after),
            "copy the live checkpoint of each flow",
            *(self._step(before, after) for before, after in move.folders),
        ]
        lines = [head, *(f"  {number}. {step}" for number, step in enumerate(steps, start=1))]
        lines.append("  lost: no rows\n  doubled: no rows")
        if self.copied:
            size = sum(size for _, size in self.copied.values())
            lines.append(
                f"  A store has no rename: {size} bytes are copied. Until it is done, updates are refused (MOVE_UNFINISHED)."
            )
        if self.resumed:
            lines.append("  An earlier run began this and did not end it.")
        if self.readers:
            lines.append(
                f"  Streams into {', '.join(self.readers)} read it: they go on from where they stand, under the new name."
            )
        return "\n".join(lines)

    def _step(self, before: str, after: str) -> str:
        if before not in self.copied:
            return f"rename {before} to {after}"
        files, size = self.copied[before]
        return (
            f"copy {before} to {after}: {files} files, {size} bytes; compare the copies, and remove {before}"
        )


def plan_move(wish: Wish) -> MovePlan:
    """The plan for the request; changes nothing.

    Raises:
        UnknownDataset: no update of the pipeline has filled such a table, or nothing is left of it.
        InvalidName, UsageError: the new name is invalid, or is the old one.
        NameTaken: something of the new name is there.
        TableNested: it would lie inside another table, or another one lies inside it.
        RefusedForSafety: the table can't go there in one step.
        MoveUnfinished: another table is half-way to another name, or this one to another one.
        PipelineRelocated: one of the pipelines has other roots now, or is half-way to these.
    """
    for folder in wish.states:
        refuse_relocated(folder)
    journals = tuple(read_journal(folder) for folder in wish.states)
    begun = _begun(wish, journals)
    if begun is not None:
        return MovePlan(begun, journals, resumed=True, copied=_copied(wish, begun.folders))
    manifest = read_manifest(wish.source.state_folder / FILE_NAME)
    entry = (
        next((item for item in manifest.datasets if item.name == wish.dataset), None) if manifest else None
    )
    if manifest is None or entry is None:
        mark = moved_to(wish.source.state_folder, wish.dataset)
        if mark is not None:  # the command may have been killed after its last step
            raise UsageError(
                f"{wish.dataset!r} is {mark[0]!r} of the pipeline {mark[1]!r} already: nothing is left to do.",
                where=wish.source.state_folder,
                remedy="Declare it by that name there, and run `headwater validate`.",
            )
        raise _unknown(wish, manifest)
    _check_kind(entry)
    if any(pending_replacements(wish.source.state_folder, wish.dataset)):
        raise RefusedForSafety(
            f"A backfill replaces rows of {wish.dataset!r}, or was killed while it did.",
            where=entry.defined_at,
            remedy="Wait until it has ended; what a killed one left, the next update ends: headwater run PIPELINE_DIR",
        )
    name, new = wish.new_name, wish.new_shown
    if new == wish.dataset and wish.source.state_folder == wish.target.state_folder:
        raise UsageError(f"{wish.dataset!r} has that name already.")
    folders = tuple(moved_folders(wish, entry, name, new))
    if not folders:
        raise _nothing_there(wish, entry)
    # Also of a table or a quarantine that is not there: what lies there would become this table's, and go with it.
    wanted = [after for before, after in table_places(wish, entry, name) if before != after]
    refuse_taken_places(wish, new, folders, wanted)
    _check_table(wish, entry)
    readers = _readers(manifest, wish.dataset)
    if entry.private and readers and wish.source.state_folder != wish.target.state_folder:
        raise RefusedForSafety(
            f"{wish.dataset!r} is private, and streams into {', '.join(readers)} read it: they could not find it in another pipeline.",
            where=entry.defined_at,
            remedy="Take private=True away and run an update first; or move its readers with it.",
        )
    move = _move(wish, new, folders)
    return MovePlan(move, journals, readers, copied=_copied(wish, move.folders))


def _nothing_there(wish: Wish, entry: DatasetEntry) -> UnknownDataset:
    """Of a table that the manifest of the last update still has: a move of nothing would leave a mark at its name."""
    why = (
        "was dropped"
        if is_dropped(wish.source.state_folder, wish.dataset)
        else "has neither rows nor a checkpoint"
    )
    return UnknownDataset(
        f"{wish.dataset!r} {why}: storage has nothing of it that could get another name.",
        where=entry.defined_at or wish.source.state_folder,
        remedy=f"Declare it as {wish.new_shown!r}, or take it out of the sources: the next update fills what they declare.",
    )


def _begun(wish: Wish, journals: Iterable[Guarded[TableMove]]) -> TableMove | None:
    """The move of the request that an earlier run began, None where none did; raises MoveUnfinished where it is another one."""
    *others, own = journals  # the source's is the last
    for journal in (own, *others):
        move = journal.record
        if move is None:
            continue
        if not _is_the_same(move, wish):
            raise unfinished(move, journal.file)
        # Killed before the source knew of it, nothing has gone, and the source's updates and commands went on.
        return None if own.record is None and not _has_ended(move, wish) else move
    return None


def _has_ended(move: TableMove, wish: Wish) -> bool:
    """Whether a move that the source knows nothing of has been carried out to its last step, and not only to its first."""
    return is_marked_by(move, wish.source.state_folder) or has_user_action(
        wish.target.state_folder, move.move_id
    )


def is_left_over(wish: Wish) -> bool:
    """Whether the target alone knows of the move of the request, which nothing else ends where it is refused now.

    Then all has gone, or nothing has, and the source's updates and commands went on.
    """
    target, *source = (read_journal(folder).record for folder in wish.states)
    return source == [None] and target is not None and _is_the_same(target, wish)


def _copied(wish: Wish, folders: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    sizes = {before: weighed(wish.place(before)) for before, _ in folders}
    return {before: size for before, size in sizes.items() if size is not None}


def _is_the_same(move: TableMove, wish: Wish) -> bool:
    """Whether it is what the request is for, whatever the folder of the sources is called where it is repeated."""
    begun = (move.source.state_folder, move.source.dataset, move.target.state_folder, move.target.dataset)
    source, target = str(wish.source.state_folder), str(wish.target.state_folder)
    return begun == (source, wish.dataset, target, wish.new_shown)


def _unknown(wish: Wish, manifest: Manifest | None) -> UnknownDataset:
    names = [entry.name for entry in manifest.tables] if manifest is not None else []
    return UnknownDataset(
        f"No update of this pipeline has filled a table {wish.dataset!r}.",
        where=wish.source.state_folder,
        remedy=did_you_mean(
            nearest(wish.dataset, names),
            "`headwater checkpoints PIPELINE_DIR` lists what storage has. What never ran is renamed in the sources alone.",
        ),
    )


def _check_kind(entry: DatasetEntry) -> None:
    if entry.kind in (DatasetKind.SINK, DatasetKind.TEMPORARY_VIEW):
        raise RefusedForSafety(
            f"{entry.name!r} is a {entry.kind.value.replace('_', ' ')}: it has no table that could be renamed.",
            where=entry.defined_at,
            remedy="A view is renamed in the sources alone. Of a sink keep the name: its flows' positions are kept under it "
            "(headwater checkpoints PIPELINE_DIR).",
        )


def _check_table(wish: Wish, entry: DatasetEntry) -> None:
    """Refuse what a killed drop has left: its next try would look for it under the old name."""
    if entry.location is None or table_exists(located(wish.source.warehouse, entry.location)):
        return
    states = (flow.surviving_state() for flow in flow_folders(wish.source.state_folder, wish.dataset))
    if any(state is not None and state.sink_id is not None for state in states):
        raise RefusedForSafety(
            f"{wish.dataset!r} has a checkpoint, and the table that it knows is not there: a drop was killed, or somebody removed it.",
            where=located(wish.source.warehouse, entry.location),
            remedy=f"End the drop: headwater drop PIPELINE_DIR {wish.dataset} --yes; or fill it again before it gets another name: "
            f"headwater run PIPELINE_DIR --full-refresh {wish.dataset}",
        )


def _move(wish: Wish, new: str, folders: tuple[tuple[AnyPlace, AnyPlace], ...]) -> TableMove:
    source, target = wish.source, wish.target
    recorded = last_batches(source.state_folder)
    flows: dict[str, str] = {}
    names: dict[str, tuple[str, str]] = {}
    last: dict[str, tuple[int, int, Any]] = {}
    for checkpoint in flow_folders(source.state_folder, wish.dataset):
        before = checkpoint.folder.name
        after = renamed_flow(before, wish.dataset, new)
        flows[before] = after
        identity = flow_identity(source.state_folder, source.pipeline_id, wish.dataset, before)
        if identity != FlowIdentity(target.pipeline_id, after):
            names[after] = identity.names
        state = checkpoint.surviving_state()
        epoch = state.epoch if state is not None else 0
        if (before, epoch) in recorded:
            batch = recorded[before, epoch]
            last[after] = (epoch, batch, _ends(checkpoint, epoch, batch))
    return TableMove(
        str(uuid.uuid4()),
        Place(str(source.state_folder), source.pipeline_id, wish.dataset),
        Place(str(target.state_folder), target.pipeline_id, new),
        wish.command,
        tuple((str(before), str(after)) for before, after in folders),
        flows,
        names,
        last,
    )


def _ends(checkpoint: FlowCheckpoint, epoch: int, batch: int) -> list[str | None] | None:
    try:
        return list(read_offsets(checkpoint.epoch_folder(epoch), batch).sources)
    except CheckpointUnreadable:
        return None


def _readers(manifest: Manifest, dataset: str) -> tuple[str, ...]:
    readers: Mapping[str, None] = {
        flow.target: None
        for flow in manifest.flows
        for source in flow.sources
        if source.name == dataset and source.streaming and flow.target != dataset
    }
    return tuple(readers)
