"""Watches a table for changes worth reporting, and remembers on disk what was delivered.

Decision 0100.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after
from headwater.change_feed.commit_changes import CommitChanges
from headwater.delta_log.commits import commit_file, newest_version
from headwater.delta_log.versions import table_head
from headwater.errors import ChangeFeedBroken
from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place


@dataclass
class ChangeWatch:
    """One watch over one table. Changes come again until ``acknowledge`` confirms that they were delivered.

    Args:
        name: of the table, ``[catalog.]schema.table``.
        table: its folder.
        change_filter: which changes count.
        memory: the file that keeps what was delivered, across restarts and crashes.
        now: seconds since 1970.

    """

    name: str
    table: Place
    change_filter: ChangeFilter
    memory: Place
    now: Callable[[], float] = time.time
    _commits: dict[int, CommitChanges] = field(default_factory=dict)
    _position: FeedPosition | None = None
    _newest: tuple[float, int] | None = None
    _opened: bool = False

    def look(self) -> ChangeRange | None:
        """The changes since the last delivery, if there are enough; costs a listing where there is nothing new.

        The whole content of a table that is new to the watch, or was recreated, counts as changes.

        Raises:
            SourceUnreachable: if the log can't be read now.

        """
        self._open()
        head = newest_version(self.table)
        if head is None or (self._position is not None and self._has_seen(head, self._position)):
            return None
        changes = self._range()
        if changes is None:
            return None
        if self.change_filter.lets_pass(changes):
            return changes if self._is_quiet(changes) else None
        if not changes.changes_data or self.change_filter.matching_rows(changes) == 0:
            # Nothing of it will ever count, so it need not be read again.
            self.acknowledge(changes)
        return None

    def acknowledge(self, news: ChangeRange) -> None:
        """Remember, durably, that these changes were delivered."""
        self._open()
        self._position = news.position
        self._commits = {v: commit for v, commit in self._commits.items() if v > news.end_version}
        write_atomically(self.memory, json.dumps({"table": self.name, **asdict(news.position)}) + "\n")

    def _has_seen(self, version: int, position: FeedPosition) -> bool:
        """Whether the newest commit is the one of the position: a table that was recreated may be at the same version again."""
        if version != position.version:
            return False
        try:
            written = commit_file(self.table, version).stat()
        except FileNotFoundError:
            return True  # it is being recreated: the next look sees what of it is there
        stamp = (written.st_mtime, written.st_size)
        if stamp != self._newest:
            head = table_head(self.table)
            if head is not None and head.table_id != position.table_id:
                return False
            self._newest = stamp
        return True

    def _range(self) -> ChangeRange | None:
        try:
            return range_after(
                self.name, self.table, self._position, columns=self.change_filter.columns, known=self._commits
            )
        except ChangeFeedBroken:
            # The readers will say what is wrong: they must be woken for that.
            self._commits.clear()
            return range_after(self.name, self.table, None)

    def _is_quiet(self, changes: ChangeRange) -> bool:
        if not self.change_filter.quiet_seconds or changes.committed_at is None:
            return True
        age = self.now() - datetime.fromisoformat(changes.committed_at).timestamp()
        return age >= self.change_filter.quiet_seconds

    def _open(self) -> None:
        if self._opened:
            return
        try:
            record = json.loads(self.memory.read_text(encoding="utf-8"))
            self._position = FeedPosition(str(record["table_id"]), int(record["version"]))
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):
            pass  # damaged: the readers are woken once more
        self._opened = True
