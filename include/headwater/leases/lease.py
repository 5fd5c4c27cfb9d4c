"""One update of a pipeline at a time: a lock of the operating system, which is released when its holder ends for any reason.

Where machines share no file system with working locks, ``store_lease`` adds one on an object store.

Decision 0005.
Decision 0146.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TextIO

from headwater.errors import LeaseLost, UpdateInProgress
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place


class Lease(Protocol):
    """The right to write. ``token`` grows with each holder."""

    @property
    def token(self) -> int: ...  # noqa: D102

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it."""


@dataclass(frozen=True)
class BesideUpdates:
    """A substitute for a lease where a task may run beside an update: Delta resolves conflicts between the two writers.

    Used by a backfill of a table whose stream goes on, and by a run that writes nothing.
    """

    token: int = 0

    def check(self) -> None:
        """Does nothing: there is no lease to lose."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, as shown to others. ``lock``: identifies the local file that it has locked as well, if any."""

    update_id: str
    token: int = 0
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    since: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    lock: tuple[str, int, int] | None = None

    def with_token(self, token: int) -> Holder:
        """The same holder with another token."""
        return replace(self, token=token)

    def text(self, **more: bool) -> str:
        """What is written into the lease."""
        fields = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps({**fields, **more})

    def wrote(self, text: str) -> bool:
        """Whether it is this holder that wrote a text."""
        holder = holder_of(text)
        return (holder.get("update_id"), holder.get("token")) == (self.update_id, self.token)


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
            holder = holder_of(self.path.read_text(encoding="utf-8"))
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
        with path.open("a+", encoding="utf-8") as stream:
            _lock(stream, ends, path)
            identity = os.fstat(stream.fileno())
            # If the file was removed while we waited, our lock is on a file that is no longer there.
            if not _is_at(path, identity):
                continue
            stream.seek(0)
            token = int(holder_of(stream.read()).get("token") or 0) + 1
            stream.truncate(0)
            stream.write(Holder(update_id, token).text())
            stream.flush()
            yield FileLease(path, token, (identity.st_dev, identity.st_ino))
            return


def _lock(stream: TextIO, ends: float, path: Path) -> None:
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                stream.seek(0)
                raise in_progress(stream.read(), path) from None
            time.sleep(0.5)
        else:
            return


def is_held(state_folder: Place) -> bool:
    """Whether somebody on this machine holds the pipeline's lease now. Nothing is written, and nobody who holds it notices."""
    if isinstance(state_folder, ObjectPath):
        from headwater.leases.storage_lease import storage_lease_is_held

        return storage_lease_is_held(state_folder)
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


def holder_of(text: str) -> dict[str, Any]:
    """The holder that a lease names; empty where it can't be parsed."""
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}  # its writer died halfway
    return value if isinstance(value, dict) else {}


def in_progress(content: str, where: object, *, dead_in: timedelta | None = None) -> UpdateInProgress:
    """The error for a second holder. ``content``: the lease's text; ``dead_in``: how soon the lease of a dead holder is free."""
    remedy = "Wait until it has ended; two at once would write the same checkpoints."
    if dead_in is not None:
        seconds = max(1, math.ceil(dead_in.total_seconds()))
        remedy += f" If its process was killed, the lease is free in {seconds} s at most."
    return UpdateInProgress(
        f"Another update of this pipeline is running: {content.strip() or 'just starting'}.",
        where=where,
        remedy=remedy,
    )
