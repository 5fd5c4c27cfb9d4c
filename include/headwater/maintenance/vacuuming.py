"""Removing files that no version needs any more, but never one that a reader still has to read.

delta-rs lists the files that are old enough; what readers need is removed from that list, by name, independent of clocks.

Decision 0117.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from headwater.definitions.intervals import FILE_RETENTION, duration
from headwater.graph.pipeline_project import PipelineProject
from headwater.maintenance.chore import ChoreKind, Finding, LeftOut, Rewriter, Step
from headwater.maintenance.file_layout import open_table
from headwater.maintenance.needed_files import NotKnown, needed_files, plain
from headwater.maintenance.reader_positions import ReaderPosition, moment_shown, reader_positions
from headwater.storage.listing import looked_over
from headwater.storage.place import Place, is_below
from headwater.storage.walking import remove_files

if TYPE_CHECKING:
    from deltalake import DeltaTable

# A file that no commit names may belong to a commit in progress, by a writer without our lease.
_IN_THE_MAKING = timedelta(days=1)
# delta-rs takes deletion vectors that are in use for leftovers; they are small.
_NEVER = (".bin",)


@dataclass(frozen=True)
class Vacuum:
    """Vacuum of one table.

    ``retention``: how long removed files stay; None for the table's own property. ``may_go_back``: its writer takes its
    newest commit back after a crash, so the version before is needed, too.
    """

    project: PipelineProject
    subject: str
    table: Place
    retention: timedelta | None = None
    now: Callable[[], float] = time.time
    may_go_back: bool = False
    kind: ChoreKind = ChoreKind.VACUUM

    def look(self) -> Finding:
        """Count the files that may go, and those that readers keep."""
        try:
            candidates = self._candidates()
        except NotKnown as error:
            return LeftOut(self.kind, self.subject, f"No file is removed: {error}.")
        if not candidates.going:
            why = f"{len(candidates.needed)} files are old enough, but {candidates.keepers()}"
            return LeftOut(self.kind, self.subject, why) if candidates.needed else None
        remark = (
            f"; {len(candidates.needed)} more stay, because {candidates.keepers()}"
            if candidates.needed
            else ""
        )
        what = f"remove files that no version of the last {_shown(candidates.retention)} has{remark}"
        return Step(self.kind, self.subject, what, len(candidates.going), candidates.bytes)

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:  # noqa: ARG002 - the form of Chore
        """Remove them; the list is computed again."""
        going = self._candidates().going
        remove_files(going)
        return f"{len(going)} files removed"

    def _candidates(self) -> _Candidates:
        opened = open_table(self.table)
        table_id = str(opened.metadata().id)
        with looked_over(self.project.storage):
            positions = reader_positions(self.project, self.table, table_id, now=self.now())
        if self.may_go_back and opened.version() > 0:
            positions.append(ReaderPosition("its writer", snapshot=opened.version() - 1))
        needed = needed_files(self.table, positions)
        retention = self._retention(opened, positions)
        hours = math.ceil(retention.total_seconds() / 3600)
        removed, in_log = (
            opened.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=full)
            for full in (False, True)
        )
        going: list[Place] = []
        still_needed: list[Place] = []
        others = _OtherTables(self.table)
        with looked_over(self.table):
            for name in sorted({*removed, *in_log}):
                path = _on_disk(self.table, name)
                if path is None or name.endswith(_NEVER) or others.have(path):
                    continue
                if name not in removed and _changed_since(path, self.now() - _IN_THE_MAKING.total_seconds()):
                    continue
                (still_needed if name in needed else going).append(path)
            size = sum(map(_bytes, going))
        return _Candidates(going, still_needed, positions, retention, size)

    def _retention(self, opened: DeltaTable, positions: Sequence[ReaderPosition]) -> timedelta:
        configured = opened.metadata().configuration.get(*FILE_RETENTION)
        own = self.retention if self.retention is not None else duration(configured) or timedelta(days=7)
        sinces = [p.since for p in positions if p.since is not None]
        return max([own, *(timedelta(seconds=self.now() - since) for since in sinces)])


class _OtherTables:
    """The tables below one: to its log, their files are leftovers that no commit names."""

    def __init__(self, table: Place) -> None:
        self._table = table
        self._owners: dict[Place, bool] = {}

    def have(self, path: Place) -> bool:
        """Whether a file below the table is another table's."""
        folder = path.parent
        if not is_below(folder, self._table) or folder == self._table:
            return False
        if folder not in self._owners:
            self._owners[folder] = (folder / "_delta_log").is_dir() or self.have(folder)
        return self._owners[folder]


@dataclass(frozen=True)
class _Candidates:
    """Files that may be removed (of ``bytes`` in all), and files that are old enough but needed, with the readers that need them."""

    going: list[Place]
    needed: list[Place]
    positions: list[ReaderPosition]
    retention: timedelta
    bytes: int

    def keepers(self) -> str:
        """Why some stay, in words."""
        reasons = []
        for position in self.positions:
            if position.version is not None:
                reasons.append(f"{position.reader} goes on at version {position.version}")
            elif position.snapshot is not None:
                reasons.append(f"{position.reader} may go back to version {position.snapshot}")
            elif position.since is not None:
                reasons.append(
                    f"{position.reader} needs what was removed after {moment_shown(position.since)}"
                )
        return "; ".join(reasons) or "the newest version has them"


def _on_disk(table: Place, name: str) -> Place | None:
    """The file of a path from delta-rs, None where it is not below the table; names of partitions may be encoded."""
    for spelled in (name, unquote(name), plain(name)):
        if Path(spelled).is_absolute() or ".." in Path(spelled).parts:
            return None
        if (table / spelled).is_file():
            return table / spelled
    return None


def _changed_since(path: Place, moment: float) -> bool:
    """Whether a file was written after ``moment`` (seconds since 1970), or has just gone: then its writer is at work."""
    try:
        return path.stat().st_mtime > moment
    except FileNotFoundError:
        return True


def _bytes(path: Place) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _shown(span: timedelta) -> str:
    hours = math.ceil(span.total_seconds() / 3600)
    return f"{hours // 24} days" if hours >= 48 and hours % 24 == 0 else f"{hours} hours"
