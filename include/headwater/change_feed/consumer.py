"""A reader of a table's changes that keeps its own position, so that every change is dealt with, and once.

A range is recorded before it is processed, and the position moves when that has succeeded. A crash in between gives
the same range again, with the same bounds: work that is keyed by them (``ChangeRange.end_version``) is idempotent.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after, the_same_range
from headwater.delta_log.versions import table_head
from headwater.errors import ChangeFeedBroken, UpdateInProgress, UsageError
from headwater.files.atomic_files import write_atomically
from headwater.storage.conditions import not_on_a_store
from headwater.storage.place import Place

Start = str | int
SNAPSHOT, LATEST = "snapshot", "latest"


@dataclass(frozen=True)
class ChangeConsumer:
    """One reader of one table.

    Attributes:
        file: keeps its position and the range being processed.
        name: of the table, ``[catalog.]schema.table``.
        table: its folder.
        start: where a reader without a position begins: ``snapshot`` (all that the table holds then, as inserts, and
            the changes after), ``latest`` (the first look only notes where the table stands), or a version.

    """

    file: Place
    name: str
    table: Place
    start: Start = SNAPSHOT

    def has_begun(self) -> bool:
        """Whether a range was begun and not finished."""
        return bool(self._read().get("begun"))

    def next_range(self) -> ChangeRange | None:
        """The range to work on, or None where nothing has changed; call it within ``alone``.

        Raises:
            ChangeFeedBroken: if what comes next is gone, or the table was recreated.
            SourceUnreachable: if the log can't be read now.

        """
        record = self._read()
        try:
            if record.get("begun"):
                return the_same_range(self.table, ChangeRange.of_dict(record["begun"]))
            after = self._position(record)
            if after is None and self.start != SNAPSHOT:
                return None
            changes = range_after(self.name, self.table, after)
        except ChangeFeedBroken as error:
            raise self._with_remedy(error) from None
        if changes is None:
            return None
        if not changes.changes_data:
            self._write(changes.position)
            return None
        self._write(after, begun=changes)
        return changes

    def done(self, worked: ChangeRange) -> None:
        """Move the position behind a range, durably."""
        self._write(worked.position)

    @contextmanager
    def alone(self, wait: timedelta = timedelta(0)) -> Iterator[None]:
        """Keep others with the same position file away inside the block.

        Raises:
            UpdateInProgress: if another holds it for longer than ``wait``.

        """
        if not isinstance(self.file, Path):
            raise not_on_a_store("The position of a reader of changes", self.file)
        lease = self.file.with_suffix(".lease")
        lease.parent.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + wait.total_seconds()
        with lease.open("a") as stream:
            while True:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= ends:
                        raise UpdateInProgress(
                            f"Another task is at work on the changes of {self.name} with the same position.",
                            where=self.file,
                            remedy="Wait until it has ended, or give this reader a name of its own.",
                        ) from None
                    time.sleep(0.2)
            yield

    def _position(self, record: dict[str, Any]) -> FeedPosition | None:
        if record.get("position"):
            return FeedPosition(**record["position"])
        if self.start == SNAPSHOT:
            return None
        head = table_head(self.table)
        if head is None:
            return None
        if self.start == LATEST:
            position = FeedPosition(head.table_id, head.version)
            self._write(position)
            return position
        return FeedPosition(head.table_id, int(self.start) - 1)

    def _read(self) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        if record.get("table") != self.name:
            raise UsageError(
                f"The position belongs to a reader of {record.get('table')}, not of {self.name}.",
                where=self.file,
                remedy="Give this reader a name of its own.",
            )
        return record

    def _write(self, position: FeedPosition | None, begun: ChangeRange | None = None) -> None:
        record = {
            "table": self.name,
            "position": asdict(position) if position else None,
            "begun": begun.as_dict() if begun else None,
        }
        write_atomically(self.file, json.dumps(record, indent=1) + os.linesep)

    def _with_remedy(self, error: ChangeFeedBroken) -> ChangeFeedBroken:
        remedy = f"{error.remedy} To start again, remove the file of the position."
        return ChangeFeedBroken(error.what, where=self.file, remedy=remedy)
