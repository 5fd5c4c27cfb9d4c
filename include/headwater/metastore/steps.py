"""What has to be done so that a metastore's entries are those of the tables: decided from what is there, without asking anybody.

Decision 0196.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headwater.metastore.conditions import MetastoreNameTaken
from headwater.metastore.entry import Entry, EntryName, mark_of, table_of
from headwater.metastore.record import Registered
from headwater.metastore.thrift_binary import Struct


class Action(StrEnum):
    """What is done with an entry."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    RENAME = "RENAME"
    DROP = "DROP"
    # It says what it should; only the record of it is written.
    KEEP = "KEEP"
    # It is gone, or is not ours any more.
    FORGET = "FORGET"


@dataclass(frozen=True)
class Step:
    """One thing to do. ``name``: the entry's, now; ``entry``: what it is to say, None where it goes."""

    action: Action
    name: EntryName
    entry: Entry | None = None

    def __str__(self) -> str:
        after = f" to {self.entry.name}" if self.action is Action.RENAME and self.entry is not None else ""
        return f"{self.action.lower()} {self.name}{after}"


def steps_for(
    entries: Sequence[Entry],
    existing: Mapping[EntryName, Struct],
    registered: Mapping[EntryName, Registered],
    is_there: Callable[[Registered], bool],
) -> tuple[list[Step], list[MetastoreNameTaken]]:
    """The steps, and what is refused.

    Args:
        entries: of all tables that there are.
        existing: the metastore's tables of their names, and of those that were registered.
        registered: what the pipeline had registered.
        is_there: whether the table of an entry that no dataset has any more is still there: it stays listed until it is dropped.
    """
    wanted = {entry.name for entry in entries}
    ids = {entry.table_id for entry in entries}
    left = {
        name: one for name, one in registered.items()
        if name not in wanted and (one.table_id in ids or not is_there(one))
    }  # fmt: skip
    gone = {
        name for name, one in left.items()
        if name not in existing or not _is_of(existing[name], {one.table_id})
    }  # fmt: skip
    leaving = {name: one.table_id for name, one in left.items() if name not in gone}
    steps, refused = [Step(Action.FORGET, name) for name in sorted(gone)], []
    for entry in entries:
        table = existing.get(entry.name)
        if table is None:
            former = next((name for name, table_id in leaving.items() if table_id == entry.table_id), None)
            leaving.pop(former or entry.name, None)
            action = Action.CREATE if former is None else Action.RENAME
            steps.append(Step(action, former or entry.name, entry))
        elif not is_ours(table, entry.table_id, registered.get(entry.name)):
            refused.append(name_taken(entry.name, entry.dataset))
        else:
            same = table_of(entry, table, "", 0) == table
            steps.append(Step(Action.KEEP if same else Action.ALTER, entry.name, entry))
    # First what goes: a name may be wanted again.
    steps += [Step(Action.DROP, name) for name in sorted(leaving)]
    return sorted(steps, key=lambda step: step.action is not Action.DROP), refused


def is_ours(table: Struct, table_id: str | None, registered: Registered | None) -> bool:
    """Whether an entry stands for the pipeline's table, or for the one that the pipeline had there before.

    The id of the Delta table decides, not the pipeline's name: a table that was moved here is ours, and that of another deployment of
    the same pipeline is not.
    """
    return _is_of(table, {table_id, registered.table_id if registered is not None else None} - {None})


def name_taken(name: EntryName, dataset: str) -> MetastoreNameTaken:
    """The error for a name that somebody else has."""
    return MetastoreNameTaken(
        f"The metastore has a table {name} that was not registered by this pipeline, and the name belongs to {dataset!r} here.",
        where=name,
        remedy=f"It was left as it is. If nobody needs it, drop it there (DROP TABLE {name}; an external table keeps its files, a managed "
        "one loses them) and run an update. Else rename either of the two, or take `metastore` out of pipeline.yml.",
    )


def _is_of(table: Struct, ids: Collection[str | None]) -> bool:
    mark = mark_of(table)
    return mark is not None and mark.table_id in ids
