"""A request to stop, written into storage: it reaches a driver on any machine, where a signal reaches only this one's.

Decision 0187.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater.files.atomic_files import write_atomically

FILE_NAME = "stop.json"
# On an object store each look is a request.
LOOK_SECONDS = 10.0


def request_stop(state_folder: Path, update_id: str) -> None:
    """Ask the driver of an update to stop after the batches in flight; it looks every ``LOOK_SECONDS``."""
    write_atomically(state_folder / FILE_NAME, json.dumps({"update_id": update_id}) + "\n")


def is_stop_requested(state_folder: Path, update_id: str) -> bool:
    """Whether this update, and not one before it, is to stop; no where storage can't be read, which the next look may."""
    try:
        request = json.loads((state_folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(request, dict) and request.get("update_id") == update_id


@contextmanager
def stop_requests(
    state_folder: Path, update_id: str, stop: Callable[[], None], *, every: float = LOOK_SECONDS
) -> Iterator[None]:
    """Look for a request to stop this update while the block runs, and call ``stop`` once there is one.

    ``every``: seconds between two looks. A request that was heard is removed when the block ends.
    """
    over, heard = threading.Event(), threading.Event()

    def look() -> None:
        while not over.wait(every):
            if is_stop_requested(state_folder, update_id):
                heard.set()
                stop()
                return

    watcher = threading.Thread(target=look, name="stop-requests", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        if heard.is_set():
            with suppress(OSError):  # it names this update: to the next one it says nothing
                (state_folder / FILE_NAME).unlink(missing_ok=True)
