"""Watches a table for changes worth telling, and remembers on disk what was told.

Decision 0100.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after
from headwater.change_feed.commit_changes import CommitChanges
from headwater.checkpoints.layout import write_atomically
from headwater.delta_log.commits import newest_version
from headwater.errors import ChangeFeedBroken


@dataclass
class ChangeWatch:
    """One watch over one table. It is told by ``told`` when its news have arrived: until then they come again.

    Args:
        name: of the table, ``[catalog.]schema.table``.
        table: its folder.
        wanted: which changes count.
        memory: the file that keeps what was told, over restarts and crashes.
        now: seconds since 1970.

    """

    name: str
    table: Path
    wanted: ChangeFilter
    memory: Path
    now: Callable[[], float] = time.time
    _commits: dict[int, CommitChanges] = field(default_factory=dict)
    _position: FeedPosition | None = None
    _opened: bool = False

    def look(self) -> ChangeRange | None:
        """The changes since the last that arrived, if there are enough; costs a listing where there is nothing new.

        A table that is new to the watch, or was made anew, is news as a whole.

        Raises:
            SourceUnreachable: if the log can't be read now.

        """
        self._open()
        head = newest_version(self.table)
        if head is None or (self._position is not None and head == self._position.version):
            return None
        found = self._range()
        if found is None:
            return None
        if self.wanted.lets_pass(found):
            return found if self._is_quiet(found) else None
        if not found.changes_data or self.wanted.matching_rows(found) == 0:
            # Nothing of it will ever count, so it need not be read again.
            self.told(found)
        return None

    def told(self, news: ChangeRange) -> None:
        """Remember, durably, that these news have arrived."""
        self._open()
        self._position = news.position
        self._commits = {v: commit for v, commit in self._commits.items() if v > news.end_version}
        write_atomically(self.memory, json.dumps({"table": self.name, **asdict(news.position)}) + "\n")

    def _range(self) -> ChangeRange | None:
        try:
            return range_after(
                self.name, self.table, self._position, columns=self.wanted.columns, known=self._commits
            )
        except ChangeFeedBroken:
            # The readers will say what is wrong: they must be woken for that.
            self._commits.clear()
            return range_after(self.name, self.table, None)

    def _is_quiet(self, found: ChangeRange) -> bool:
        if not self.wanted.quiet_seconds or found.committed_at is None:
            return True
        age = self.now() - datetime.fromisoformat(found.committed_at).timestamp()
        return age >= self.wanted.quiet_seconds

    def _open(self) -> None:
        if self._opened:
            return
        try:
            kept = json.loads(self.memory.read_text(encoding="utf-8"))
            self._position = FeedPosition(str(kept["table_id"]), int(kept["version"]))
        except FileNotFoundError:
            pass
        self._opened = True
