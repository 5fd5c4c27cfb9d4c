"""A range that a backfill replaces: written down before its commit, so that whoever comes after a kill ends the work."""

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

from headwater.checkpoints.layout import sync_folder

_FOLDER = "backfills"


@dataclass(frozen=True)
class PendingReplacement:
    """What has to be known to put rows back that a live stream wrote to the range meanwhile.

    Attributes:
        dataset: the table's name as the manifest shows it.
        application: the transaction id of the replacing commit.
        condition: the rows of the range, in SQL.
        user_metadata: JSON that the commits carry.
        known: by the id that a stream commits under, the version whose rows of it the backfill saw.

    """

    dataset: str
    application: str
    condition: str
    user_metadata: str
    known: Mapping[str, int]

    @contextmanager
    def written_down(self, state_folder: Path) -> Iterator[None]:
        """Make it known, durable before the block begins; it is locked while the block runs.

        The lock is taken before the name is there: whoever sees the file sees that somebody works on it.

        ``state_folder`` is the pipeline's folder in storage.
        """
        file = self._file(state_folder)
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

    def cross_out(self, state_folder: Path) -> None:
        """The rows are back, or never went: nothing is pending."""
        self._file(state_folder).unlink(missing_ok=True)

    def is_abandoned(self, state_folder: Path) -> bool:
        """Whether the backfill that wrote it down has ended, however that came; it may come back (see ``abandoned``)."""
        try:
            with self._file(state_folder).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, BlockingIOError):
            return False
        return True

    @contextmanager
    def abandoned(self, state_folder: Path) -> Iterator[bool]:
        """As ``is_abandoned``; while the block runs the backfill can't come back and write it down again.

        For who crosses it out: what is not committed inside the block never will be, under this entry.
        """
        with _nobody_ends(state_folder):
            yield self.is_abandoned(state_folder)

    def _file(self, state_folder: Path) -> Path:
        name = sha256(self.application.encode()).hexdigest()[:20]
        return state_folder / _FOLDER / self.dataset / f"{name}.json"


@contextmanager
def _nobody_ends(state_folder: Path) -> Iterator[None]:
    """Keep those apart who write an entry down and who cross one out."""
    with (state_folder / _FOLDER / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pending_replacements(state_folder: Path, dataset: str = "*") -> Iterator[PendingReplacement]:
    """The replacements of a table, or of all, that nobody has crossed out."""
    for file in sorted((state_folder / _FOLDER).glob(f"{dataset}/*.json")):
        with suppress(FileNotFoundError):  # crossed out just now
            yield PendingReplacement(**json.loads(file.read_text(encoding="utf-8")))
