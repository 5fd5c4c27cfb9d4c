"""One update of a pipeline at a time: a lock of the operating system, which ends with its holder, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from headwater.errors import UpdateInProgress


@contextmanager
def update_lease(state_folder: Path, update_id: str, *, wait: timedelta = timedelta(0)) -> Iterator[None]:
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
    with path.open("a+", encoding="utf-8") as stream:
        if not _locked(stream, wait):
            stream.seek(0)
            raise UpdateInProgress(
                f"Another update of this pipeline is running: {stream.read().strip() or 'just starting'}.",
                where=path,
                remedy="Wait until it has ended; two at once would write the same checkpoints.",
            )
        holder = {
            "update_id": update_id,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        stream.truncate(0)
        stream.write(json.dumps(holder))
        stream.flush()
        yield


def _locked(stream: TextIO, wait: timedelta) -> bool:
    ends = time.monotonic() + wait.total_seconds()
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(0.5)
        else:
            return True
