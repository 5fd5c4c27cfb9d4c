"""A range that a backfill replaces: recorded before its commit, so that after a kill the next process can finish the work.

On a disk a lock says whether the backfill is alive. On a store nothing can, and nothing has to: each attempt has a record of its
own, and one that the table does not have yet stays, for as long as its attempt might still commit.

Decision 0191.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

from headwater.checkpoints.record_files import recorded
from headwater.delta_log.table_history import has_transaction
from headwater.files.atomic_files import make_folders, sync_folder
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place
from headwater.storage.walking import in_order

_FOLDER = "backfills"
# In the metadata of a backfill's commits: the id of the attempt.
_ATTEMPT = "backfill"
# As long as Delta keeps what a writer has written and not committed: a driver that sleeps for longer has lost its files to vacuum.
_KEPT_ON_A_STORE = timedelta(days=7)


@dataclass(frozen=True)
class PendingReplacement:
    """What is needed to restore rows that a live stream wrote to the range meanwhile.

    Attributes:
        dataset: the table's name as the manifest shows it.
        application: the transaction id of the replacing commit.
        condition: the rows of the range, in SQL.
        user_metadata: JSON that the commits carry.
        known: by the id that a stream commits under, the version up to which the backfill saw its rows.

    """

    dataset: str
    application: str
    condition: str
    user_metadata: str
    known: Mapping[str, int]

    @contextmanager
    def written_down(self, state_folder: Place) -> Iterator[None]:
        """Publish it, durably, before the block begins; on a disk it is locked while the block runs.

        The lock is taken before the file has its name: whoever sees the file also sees that it is in use.

        ``state_folder`` is the pipeline's folder in storage.
        """
        file = self._file(state_folder)
        if isinstance(file, ObjectPath):
            file.write_text(self._text)
            yield
            return
        make_folders(file.parent)
        making = file.with_name(f".{file.name}.{uuid4().hex}")
        with making.open("x+", encoding="utf-8") as locked:
            try:
                fcntl.flock(locked, fcntl.LOCK_SH)
                locked.write(self._text)
                locked.flush()
                os.fsync(locked.fileno())
                with _nobody_ends(state_folder):
                    making.replace(file)
                sync_folder(file.parent)
            except BaseException:
                making.unlink(missing_ok=True)
                raise
            yield

    def cross_out(self, state_folder: Place) -> None:
        """Remove the record: the rows are restored, or were never replaced."""
        self._file(state_folder).unlink(missing_ok=True)

    def is_abandoned(self, state_folder: Place) -> bool:
        """Whether the backfill that recorded it has ended, for whatever reason; it may be started again (see ``abandoned``).

        On a store: whether it was recorded so long ago that it can't commit any more.
        """
        file = self._file(state_folder)
        try:
            if isinstance(file, ObjectPath):
                return time.time() - file.stat().st_mtime > _KEPT_ON_A_STORE.total_seconds()
            with file.open("r+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, BlockingIOError):
            return False
        return True

    @contextmanager
    def abandoned(self, state_folder: Place) -> Iterator[bool]:
        """As ``is_abandoned``; while the block runs the backfill can't be started again and record it a second time.

        For removing the record: what is not committed by then never will be, under this entry.
        """
        with _nobody_ends(state_folder):
            yield self.is_abandoned(state_folder)

    def needs_an_update(self, state_folder: Place, table: Place) -> bool:
        """Whether an update has something to do: to put rows back, or, on a disk, to remove the record of a dead backfill."""
        return not isinstance(state_folder, ObjectPath) or has_transaction(table, self.application, 0)

    def was_made_by_another(self, state_folder: Place, metadata: Mapping[str, Any]) -> bool:
        """Whether a commit of this application is another attempt's, by the metadata of the commit: this one's never will be.

        Then that attempt's record counts. On a disk all attempts have one record.
        """
        mine, its = json.loads(self.user_metadata).get(_ATTEMPT), metadata.get(_ATTEMPT)
        return isinstance(state_folder, ObjectPath) and None not in (mine, its) and mine != its

    @property
    def _text(self) -> str:
        return json.dumps(asdict(self))

    def _file(self, state_folder: Place) -> Place:
        parts = [self.application]
        if isinstance(state_folder, ObjectPath):
            parts.append(self.user_metadata)
        name = sha256("\0".join(parts).encode()).hexdigest()[:20]
        return state_folder / _FOLDER / self.dataset / f"{name}.json"


@contextmanager
def _nobody_ends(state_folder: Place) -> Iterator[None]:
    """Serialise writing and removing entries; on a store no two processes write one."""
    if isinstance(state_folder, ObjectPath):
        yield
        return
    with (state_folder / _FOLDER / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pending_replacements(state_folder: Place, dataset: str = "*") -> Iterator[PendingReplacement]:
    """The replacements, of a table or of all, that are not removed yet; raises FlowStateDamaged, StorageNotReadable."""
    for file in in_order((state_folder / _FOLDER).glob(f"{dataset}/*.json")):
        pending = recorded(
            file,
            lambda data: PendingReplacement(**data),
            what="The record of an unfinished backfill",
            unknown="which rows an unfinished backfill has to put back",
        )
        if pending is not None:  # else it was removed just now
            yield pending
