"""One update of a pipeline at a time: a lock of the operating system, which ends with its holder, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from headwater.errors import LeaseLost, UpdateInProgress


@dataclass(frozen=True)
class Lease:
    """The right to write, as long as the file is the one that was locked and says so.

    ``token`` grows with each holder. No clock decides who holds it.
    """

    path: Path
    token: int
    _file: tuple[int, int]

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it: the file was removed, replaced, or written by another holder."""
        try:
            now = self.path.stat()
            holder = _holder(self.path.read_text(encoding="utf-8"))
        except OSError:
            now, holder = None, {}
        if now is None or (now.st_dev, now.st_ino) != self._file or holder.get("token") != self.token:
            raise LeaseLost(
                "The lease of this update was taken from it: its file was removed or replaced while it ran.",
                where=self.path,
                remedy="Never remove update.lease; a dead holder's lock is free by itself. Run the update again: it goes on from "
                "where this one stood.",
            )


@contextmanager
def update_lease(state_folder: Path, update_id: str, *, wait: timedelta = timedelta(0)) -> Iterator[Lease]:
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
        with path.open("a+", encoding="utf-8") as stream:
            _lock(stream, ends, path)
            identity = os.fstat(stream.fileno())
            # Whoever removed the file while we waited made our lock one on nothing.
            if not _is_at(path, identity):
                continue
            stream.seek(0)
            token = int(_holder(stream.read()).get("token") or 0) + 1
            holder = {
                "update_id": update_id,
                "host": socket.gethostname(),
                "process": os.getpid(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
                "token": token,
            }
            stream.truncate(0)
            stream.write(json.dumps(holder))
            stream.flush()
            yield Lease(path, token, (identity.st_dev, identity.st_ino))
            return


def _lock(stream: TextIO, ends: float, path: Path) -> None:
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                stream.seek(0)
                raise UpdateInProgress(
                    f"Another update of this pipeline is running: {stream.read().strip() or 'just starting'}.",
                    where=path,
                    remedy="Wait until it has ended; two at once would write the same checkpoints.",
                ) from None
            time.sleep(0.5)
        else:
            return


def _is_at(path: Path, identity: os.stat_result) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (identity.st_dev, identity.st_ino)


def _holder(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}  # its writer died in the middle
    return value if isinstance(value, dict) else {}
