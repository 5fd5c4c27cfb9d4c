"""What a stream has yet to read of a Delta table, and whether the table's log still has it.

Decision 0098, decision 0221.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headwater.checkpoints.conditions import SourceLogCut, SourceLogDamaged, SourceLogHole
from headwater.delta_log.commits import (
    Action,
    checksums_of,
    commit_file,
    commit_versions,
    log_folder,
    read_actions,
)
from headwater.delta_log.damaged_commits import commit_fault, damaged_commit
from headwater.delta_log.table_history import missing_versions
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.place import Place

# Reading more than this would hold up the start; the oldest commits are the first to go.
MOST_COMMITS = 200
_MOST_BYTES = 4_000_000


class CommitDamaged(Exception):
    """A commit is empty or cut short. Its arguments are its version, and what is wrong with it in words."""


@dataclass(frozen=True)
class Unread:
    """What a stream has yet to read: the table's log, and the position in it.

    ``again``: the version from which Spark plans the last batch again at each start; None where it does not.
    """

    source: StreamSource
    table: Place
    offset: Mapping[str, Any]
    again: int | None = None

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self.source.name or self.table.name

    @property
    def version(self) -> int:
        """Where the stream reads on."""
        return int(self.offset["reservoirVersion"])

    @property
    def first_read(self) -> bool:
        """Whether the first snapshot is still being read."""
        return bool(self.offset.get("isStartingVersion"))

    @cached_property
    def _names(self) -> list[str]:
        return [path.name for path in log_folder(self.table).iterdir()]

    @cached_property
    def commits(self) -> list[int]:
        """The versions in the log, ascending."""
        return commit_versions(self.table)

    @cached_property
    def checkpoints(self) -> list[int]:
        """The versions that have a checkpoint, ascending."""
        return sorted({int(n[:20]) for n in self._names if n[:20].isdigit() and ".checkpoint" in n})

    def commits_ahead(self) -> Iterator[tuple[int, list[Action]]]:
        """The commits that are to be read, of those that are there; bounded, so that a start is not held up."""
        first = self.version + (1 if self.first_read else 0)
        size = 0
        for version in [number for number in self.commits if number >= first][:MOST_COMMITS]:
            size += commit_file(self.table, version).stat().st_size
            if size > _MOST_BYTES:
                return
            yield version, self.actions(version)

    def actions(self, version: int) -> list[Action]:
        """What a commit does; raises CommitDamaged."""
        file = commit_file(self.table, version)
        try:
            actions = read_actions(file)
        except ValueError:
            raise CommitDamaged(version, commit_fault(file) or "a line is damaged") from None
        if not actions:
            raise CommitDamaged(version, commit_fault(file) or "the file is empty")
        return actions

    @property
    def reads_changes(self) -> bool:
        """Whether the stream asks for the change feed."""
        return self.source.on("readChangeFeed") or self.source.on("readChangeData")

    @property
    def skip(self) -> int:
        """How many files of the first version were read."""
        return max(0, int(self.offset.get("index", -1)) + 1)


def log_is_broken(unread: Unread) -> Iterator[Damage]:
    """A commit is missing between others."""
    holes = missing_versions(unread.table)
    if holes:
        yield Damage(
            SourceLogHole(
                f"The log of the table {unread.name!r} has a hole: version {holes[0]} is missing, and later ones are there.",
                where=unread.table / "_delta_log",
                remedy="Restore the file from a backup. Nothing can write to the table until then.",
            ),
            (
                f"missing versions: {holes[:10]}",
                f"versions there: {unread.commits[0]} to {unread.commits[-1]}",
            ),
            (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
        )


def log_is_cut(start: FlowStart, unread: Unread) -> Iterator[Damage]:
    """What is unread has been cleaned away."""
    first = unread.commits[0]
    if unread.first_read:
        base = max((v for v in unread.checkpoints if v <= unread.version), default=None)
        fine = first == 0 or (base is not None and first <= base + 1)
    else:
        fine = first <= unread.version
    if fine:
        return
    lost = f"versions {unread.version} to {first - 1}"
    yield Damage(
        SourceLogCut(
            f"{start.flow!r} has not read {lost} of the table {unread.name!r}, and they have left its log.",
            where=unread.table / "_delta_log",
            remedy=f"Refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}; or go on without them: "
            f"{start.command('new-epoch')} --from-version {first}. failOnDataLoss does not help here.",
        ),
        (f"position: version {unread.version}", f"oldest version in the log: {first}"),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def source_commit_is_damaged(
    source: StreamSource, table: Place, *, readable: bool = True, since: int = 0
) -> Iterator[Damage]:
    """A disk that lost power leaves a file empty or cut, and a stream reads an empty commit as one without rows.

    ``since``: the first version that the stream has not read; a first read is put together from all of them.
    """
    with suppress(FileNotFoundError):  # cleaned away meanwhile, after later ones
        damaged = damaged_commit(table, readable=readable, since=since)
        if damaged is not None:
            yield commit_damage(source.name or table.name, table, int(damaged[0].stem), damaged[1])


def commit_damage(name: str, table: Place, version: int, fault: str) -> Damage:
    """The finding for a commit that a stream would read, or pass over, as it must not."""
    file = commit_file(table, version)
    return Damage(
        SourceLogDamaged(
            f"Version {version} of the table {name!r} is damaged: {fault}. A stream would pass over the rows that it added, or read those of another twice.",
            where=file,
            remedy="Restore the file from a backup. If there is none, whoever writes the table has to write these rows again: "
            f"move the file away with its checksums ({checksums_of(file)}) if it is the newest, then write them.",
        ),
        (f"version {version}: {fault}",),
    )
