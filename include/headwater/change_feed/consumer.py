"""A reader of a table's changes that keeps its own position, so that every change is dealt with, and once.

A range is recorded before it is processed, and the position moves when that has succeeded. A crash in between gives
the same range again, with the same bounds: work that is keyed by them (``ChangeRange.end_version``) is idempotent.

On an object store the position is written under the condition that nobody has written it since it was read: a reader that
stood still for so long that another one took over moves nothing.

Decision 0191.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from uuid import uuid4

from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after, the_same_range
from headwater.delta_log.versions import table_head
from headwater.errors import ChangeFeedBroken, LeaseLost, UpdateInProgress, UsageError
from headwater.files.atomic_files import write_atomically
from headwater.leases.storage_lease import object_lease
from headwater.storage.atomic import read_record, write_if_unchanged
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

Start = str | int
SNAPSHOT, LATEST = "snapshot", "latest"


@dataclass(frozen=True)
class _Record:
    """What the file of a position says. ``tag``: of the object on a store, as it was read."""

    position: FeedPosition | None = None
    begun: ChangeRange | None = None
    tag: str | None = None


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
        return self._read().begun is not None

    def next_range(self) -> ChangeRange | None:
        """The range to work on, or None where nothing has changed; call it within ``alone``.

        Raises:
            ChangeFeedBroken: if what comes next is gone, the table was recreated, or the position can't be read.
            SourceUnreachable: if the log can't be read now.

        """
        record = self._read()
        try:
            if record.begun is not None:
                return the_same_range(self.table, record.begun)
            after, tag = self._position(record)
            if after is None and self.start != SNAPSHOT:
                return None
            changes = range_after(self.name, self.table, after)
        except ChangeFeedBroken as error:
            raise self._with_remedy(error) from None
        if changes is None:
            return None
        if not changes.changes_data:
            self._write(changes.position, tag)
            return None
        self._write(after, tag, begun=changes)
        return changes

    def done(self, worked: ChangeRange) -> None:
        """Move the position behind a range, durably.

        Raises:
            LeaseLost: another task took the reader over while this one stood still, and has not dealt with the range yet.

        """
        if not isinstance(self.file, ObjectPath):
            self._write(worked.position, None)
            return
        record = self._read()
        if record.begun == worked:
            self._write(worked.position, record.tag)
            return
        at = record.position
        # Else the other task has dealt with it, under the same bounds.
        if at is None or at.table_id != worked.table_id or at.version < worked.end_version:
            raise self._taken_over()

    @contextmanager
    def alone(self, wait: timedelta = timedelta(0)) -> Iterator[None]:
        """Keep others with the same position file away inside the block.

        Raises:
            UpdateInProgress: if another holds it for longer than ``wait``.

        """
        lease = self.file.with_suffix(".lease")
        if isinstance(lease, ObjectPath):
            with self._leased(lease, wait):
                yield
            return
        lease.parent.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + wait.total_seconds()
        with lease.open("a") as stream:
            while True:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= ends:
                        raise self._busy() from None
                    time.sleep(0.2)
            yield

    @contextmanager
    def _leased(self, lease: ObjectPath, wait: timedelta) -> Iterator[None]:
        """The lease of a position on a store; errors of the block pass as they are."""
        with ExitStack() as stack:
            try:
                stack.enter_context(object_lease(lease, f"reader-{uuid4()}", wait=wait))
            except UpdateInProgress:
                raise self._busy() from None
            yield

    def _busy(self) -> UpdateInProgress:
        return UpdateInProgress(
            f"Another task is at work on the changes of {self.name} with the same position.",
            where=self.file,
            remedy="Wait until it has ended, or give this reader a name of its own.",
        )

    def _taken_over(self) -> LeaseLost:
        return LeaseLost(
            f"Another task has moved the position in the changes of {self.name} meanwhile.",
            where=self.file,
            remedy="This one stood still for more than a minute. Run it again: it goes on from the position that is there now.",
        )

    def _position(self, record: _Record) -> tuple[FeedPosition | None, str | None]:
        """The position, and the tag of its record as it is then."""
        if record.position is not None or self.start == SNAPSHOT:
            return record.position, record.tag
        head = table_head(self.table)
        if head is None:
            return None, record.tag
        if self.start == LATEST:
            position = FeedPosition(head.table_id, head.version)
            self._write(position, record.tag)
            return position, self._read().tag
        return FeedPosition(head.table_id, int(self.start) - 1), record.tag

    def _read(self) -> _Record:
        try:
            text, tag = read_record(self.file)
        except FileNotFoundError:
            return _Record()
        try:
            values = dict(json.loads(text))
            position, begun = values.get("position"), values.get("begun")
            record = _Record(
                FeedPosition(**position) if position else None,
                ChangeRange.of_dict(begun) if begun else None,
                tag,
            )
        except (ValueError, TypeError, KeyError) as error:
            raise self._with_remedy(
                ChangeFeedBroken(
                    f"The position in the changes of {self.name} can't be read: {error}.",
                    remedy="Restore its file from a backup.",
                )
            ) from None
        if values.get("table") != self.name:
            raise UsageError(
                f"The position belongs to a reader of {values.get('table')}, not of {self.name}.",
                where=self.file,
                remedy="Give this reader a name of its own.",
            )
        return record

    def _write(
        self, position: FeedPosition | None, tag: str | None, begun: ChangeRange | None = None
    ) -> None:
        """Write the record; on a store where it is still the one of ``tag`` (on a disk, the lock says so)."""
        record = {
            "table": self.name,
            "position": asdict(position) if position else None,
            "begun": begun.as_dict() if begun else None,
        }
        if isinstance(self.file, ObjectPath):
            # No other writer's record has this text.
            text = json.dumps({**record, "written": uuid4().hex}, indent=1) + os.linesep
            if not write_if_unchanged(self.file, text, tag):
                raise self._taken_over()
        else:
            write_atomically(self.file, json.dumps(record, indent=1) + os.linesep)

    def _with_remedy(self, error: ChangeFeedBroken) -> ChangeFeedBroken:
        remedy = f"{error.remedy} To start again, remove the file of the position."
        return ChangeFeedBroken(error.what, where=self.file, remedy=remedy)
