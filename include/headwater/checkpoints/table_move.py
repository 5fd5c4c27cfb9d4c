"""A rename or move of a table: the journal while it is under way, and the mark that it leaves at the old name.

Decision 0095.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.checkpoints.conditions import MoveUnfinished, TableMoved
from headwater.checkpoints.guarded_files import Guarded, GuardedKind, end_guarded, seen_text, write_guarded
from headwater.checkpoints.whole_folders import unfinished as unfinished_folders
from headwater.files.atomic_files import is_unfinished_write
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place as AnyPlace
from headwater.storage.walking import contents_below


@dataclass(frozen=True)
class Place:
    """A table of a pipeline: the pipeline's folder in storage, its id, and the name that the pipeline has for the table."""

    state_folder: str
    pipeline: str
    dataset: str


@dataclass(frozen=True)
class TableMove:
    """Everything that a second run needs to finish what the first one began.

    ``command``: what ends it, for messages. ``folders``: (from, to), each renamed in one step. ``flows``: names of flows
    before and after. ``names``: of flows of the target, the names that their commits go on to carry (pipeline, flow).
    ``last_batches``: of each flow of the target that the source's event log knows, its epoch, the last batch of the log,
    and where that ended.
    """

    move_id: str
    source: Place
    target: Place
    command: str
    folders: tuple[tuple[str, str], ...]
    flows: Mapping[str, str]
    names: Mapping[str, tuple[str, str]]
    last_batches: Mapping[str, tuple[int, int, Any]]

    @property
    def within(self) -> bool:
        """Whether the table stays in its pipeline."""
        return self.source.state_folder == self.target.state_folder

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> TableMove:
        """The move from its JSON form."""
        return cls(
            data["move_id"],
            Place(**data["source"]),
            Place(**data["target"]),
            data["command"],
            tuple((before, after) for before, after in data["folders"]),
            dict(data["flows"]),
            {flow: (pipeline, name) for flow, (pipeline, name) in data["names"].items()},
            {flow: (epoch, batch, ends) for flow, (epoch, batch, ends) in data["last_batches"].items()},
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def journal_file(state_folder: AnyPlace) -> AnyPlace:
    """The journal of the move that is under way in a pipeline; where none is, there is no file, or one that says so."""
    return state_folder / "move.json"


def mark_file(state_folder: AnyPlace, dataset: str) -> AnyPlace:
    """The mark that a table of this name has another one now; on a store also one that says that the name is a table's again."""
    return state_folder / "checkpoints" / dataset / "moved.json"


@dataclass(frozen=True)
class _Mark:
    """What a mark says. ``move``: the id of the move that left it."""

    dataset: str
    pipeline: str
    move: str


def _mark(state_folder: AnyPlace, name: str, unknown: str) -> _Mark | None:
    marks = GuardedKind(
        lambda data: _Mark(str(data["moved_to"]), str(data["pipeline"]), str(data.get("move"))),
        {"what": f"The mark that the table {name!r} has another name", "unknown": unknown},
    )
    return marks.record(mark_file(state_folder, name))


_JOURNALS = GuardedKind(
    TableMove.of,
    {
        "what": "The journal of a table's move",
        "unknown": "whether a table is half-way to another name",
    },
)


def read_journal(state_folder: AnyPlace) -> Guarded[TableMove]:
    """The journal for who writes it; raises FlowStateDamaged where it can't be read."""
    return _JOURNALS.seen(journal_file(state_folder))


def unfinished_move(state_folder: AnyPlace) -> TableMove | None:
    """The move that was begun and not ended; errors as of ``read_journal``."""
    return _JOURNALS.record(journal_file(state_folder))


def refuse_unfinished(state_folder: AnyPlace) -> None:
    """Raise MoveUnfinished where a move was begun and not ended: half of the table may lie at its old place."""
    move = unfinished_move(state_folder)
    if move is not None:
        raise unfinished(move, journal_file(state_folder))


def unfinished(move: TableMove, journal: AnyPlace) -> MoveUnfinished:
    """What is raised for a move that was begun and not ended."""
    return MoveUnfinished(
        f"The table {move.source.dataset!r} is half-way to {move.target.dataset!r}: the process that moves it has died, or is at work.",
        where=journal,
        remedy=f"End it: {move.command} --yes. Nothing is lost.",
    )


def write_journals(move: TableMove, journals: Iterable[Guarded[TableMove]]) -> None:
    """Write the move down in both pipelines, durably, where it is not; raises LeaseLost where another process has been there."""
    text = json.dumps(move.as_dict(), indent=1) + "\n"
    for journal in journals:
        if not _is_of(journal, move):
            write_guarded(journal, text)


def end_journal(move: TableMove, state_folder: AnyPlace) -> None:
    """Say in a pipeline that the move has ended; where the journal is not this move's, another process has."""
    journal = read_journal(state_folder)
    if _is_of(journal, move):
        end_guarded(journal, move.move_id)


def _is_of(journal: Guarded[TableMove], move: TableMove) -> bool:
    return journal.record is not None and journal.record.move_id == move.move_id


def mark_old_name(move: TableMove, state_folder: AnyPlace, check: Callable[[], None]) -> None:
    """Leave at the old name, in the folder of the pipeline that had it, where the table is now.

    ``check``: raises where the lease is lost; LeaseLost is raised, too, where another process has written the mark since.
    """
    where = {"moved_to": move.target.dataset, "pipeline": move.target.pipeline, "move": move.move_id}
    seen = seen_text(mark_file(state_folder, move.source.dataset))
    check()  # after the look: what is written depends on that nobody has been there since
    write_guarded(seen, json.dumps(where, indent=1) + "\n")


def forget_mark(move: TableMove, state_folder: AnyPlace) -> None:
    """The new name is a table's again, if one had it before that went elsewhere; LeaseLost as of ``mark_old_name``.

    On a store the mark stays, and says so: a removal has no condition, and would take along what a later move has left there.
    """
    seen = seen_text(mark_file(state_folder, move.target.dataset))
    if seen.record is not None:
        end_guarded(seen, move.move_id)


def moved_to(state_folder: AnyPlace, name: str) -> tuple[str, str] | None:
    """The name that a table of this old name has now, and the pipeline; None where none was moved from there."""
    mark = _mark(state_folder, name, f"where the table {name!r} is now")
    return None if mark is None else (mark.dataset, mark.pipeline)


def is_marked_by(move: TableMove, state_folder: AnyPlace) -> bool:
    """Whether the mark at the old name, in the folder of the pipeline that had it, is of this move, and not of a later one."""
    mark = _mark(state_folder, move.source.dataset, "whether its move has ended")
    return mark is not None and mark.move == move.move_id


def refuse_old_names(state_folder: AnyPlace, declared: Mapping[str, object]) -> None:
    """Raise TableMoved where sources declare a table by its old name: it would be filled again from the beginning.

    Args:
        state_folder: the pipeline's folder in storage.
        declared: where each table of the sources is declared, by name.
    """
    for name, where in declared.items():
        mark = moved_to(state_folder, name)
        if mark is None:
            continue
        new, pipeline = mark
        here = pipeline == state_folder.name
        raise TableMoved(
            f"The table {name!r} is {new!r} now{'' if here else ' of the pipeline ' + pipeline}, and the "
            "sources still declare the old one: it would be filled a second time.",
            where=where or mark_file(state_folder, name),
            remedy=(f"Declare it as {new!r}" if here else "Remove it from these sources")
            + f"; or, for a new table of the old name, forget the old one first: headwater drop PIPELINE_DIR {name} --yes",
        )


def is_free(folder: AnyPlace, names: Collection[str] = ("moved.json",)) -> bool:
    """Whether nothing lies in a folder, but for what a move left there, also one that was killed, and for marks of folders on a store.

    A mark of a folder that is being filled, with nothing in it, is what a process that stood still has left behind.
    """
    if isinstance(folder, ObjectPath):
        files = [file for file, _ in contents_below(folder)]
        return all(
            file.parent == folder and (file.name in names or unfinished_folders([file.name]))
            for file in files
        )
    if not folder.is_dir():
        return not folder.exists()
    return all(path.name in names or is_unfinished_write(path.name, names) for path in folder.iterdir())
