"""A lease on a disk: a lock of the operating system, which is released when its holder ends for any reason.

Decision 0005.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from headwater.errors import LeaseLost
from headwater.leases.holder import Holder, holder_of, in_progress, log_wait, token_of


@dataclass(frozen=True)
class FileLease:
    """The right to write, as long as the locked file is in its place and names this holder. It does not depend on clocks."""

    path: Path
    token: int
    _file: tuple[int, int]

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it: the file was removed, replaced, or written by another holder."""
        try:
            now = self.path.stat()
            holder = holder_of(self.path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            now, holder = None, {}
        except OSError as error:
            # It may have been taken: nothing more is written. The remedy differs.
            raise LeaseLost(
                f"Whether this update still holds its lease is not known: its file can't be read ({error.strerror or error}).",
                where=self.path,
                remedy="Make the storage readable and run the update again: it goes on from where this one stood.",
            ) from None
        if now is None or (now.st_dev, now.st_ino) != self._file or holder.get("token") != self.token:
            raise LeaseLost(
                "The lease of this update was taken from it: its file was removed or replaced while it ran.",
                where=self.path,
                remedy="Never remove update.lease; a dead holder's lock is free by itself. Run the update again: it goes on from "
                "where this one stood.",
            )


@contextmanager
def update_lease(
    state_folder: Path, update_id: str, *, wait: timedelta = timedelta(0)
) -> Iterator[FileLease]:
    """Hold the pipeline's lease inside the block.

    Args:
        state_folder: the pipeline's folder in storage.
        update_id: written into the lease, so that others can say who holds it.
        wait: how long to wait for another holder to end.

    Raises:
        UpdateInProgress: where another update holds it, naming that one.
    """
    path = state_folder / "update.lease"
    path.parent.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + wait.total_seconds()
    while True:
        with path.open("a+", encoding="utf-8", errors="replace") as stream:
            _lock(stream, ends, path)
            identity = os.fstat(stream.fileno())
            # If the file was removed while we waited, our lock is on a file that is no longer there.
            if not _is_at(path, identity):
                continue
            stream.seek(0)
            token = token_of(holder_of(stream.read())) + 1
            stream.truncate(0)
            stream.write(Holder(update_id, token).text())
            stream.flush()
            yield FileLease(path, token, (identity.st_dev, identity.st_ino))
            return


def _lock(stream: TextIO, ends: float, path: Path) -> None:
    waits = False
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = ends - time.monotonic()
            if left <= 0 or not waits:
                stream.seek(0)
                content = stream.read()
                if left <= 0:
                    raise in_progress(content, path) from None
                log_wait(content, left)
                waits = True
            time.sleep(0.5)
        else:
            return


def is_locked(state_folder: Path) -> bool:
    """Whether somebody on this machine holds the lease now. Nothing is written, and nobody who holds it notices."""
    try:
        with (state_folder / "update.lease").open(encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _is_at(path: Path, identity: os.stat_result) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (identity.st_dev, identity.st_ino)
