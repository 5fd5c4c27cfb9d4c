"""A range that a backfill replaces: recorded before its commit, so that after a kill the next process can finish the work."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from headwater.files.atomic_files import sync_folder
from headwater.storage.conditions import not_on_a_store
from headwater.storage.place import Place
from headwater.storage.walking import in_order

_FOLDER = "backfills"


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
        """Publish it, durably, before the block begins; it is locked while the block runs.

        The lock is taken before the file has its name: whoever sees the file also sees that it is in use.

        ``state_folder`` is the pipeline's folder in storage.
        """
        file = self._file(state_folder)
        if not isinstance(file, Path):
            raise not_on_a_store("A backfill that replaces rows", state_folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        making = file.with_name(f".{file.name}.{uuid4().hex}")
        with making.open("x+", encoding="utf-8") as locked:
            try:
                fcntl.flock(locked, fcntl.LOCK_SH)
                locked.write(json.dumps(asdict(self)))
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
        """Whether the backfill that recorded it has ended, for whatever reason; it may be started again (see ``abandoned``)."""
        try:
            with self._file(state_folder).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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

    def _file(self, state_folder: Place) -> Place:
        name = sha256(self.application.encode()).hexdigest()[:20]
        return state_folder / _FOLDER / self.dataset / f"{name}.json"


@contextmanager
def _nobody_ends(state_folder: Place) -> Iterator[None]:
    """Serialise writing and removing entries."""
    with (state_folder / _FOLDER / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pending_replacements(state_folder: Place, dataset: str = "*") -> Iterator[PendingReplacement]:
    """The replacements, of a table or of all, that are not removed yet."""
    for file in in_order((state_folder / _FOLDER).glob(f"{dataset}/*.json")):
        with suppress(FileNotFoundError):  # crossed out just now
            yield PendingReplacement(**json.loads(file.read_text(encoding="utf-8")))
