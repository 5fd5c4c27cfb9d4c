"""A request to stop, written into storage: it reaches a driver on any machine, where a signal reaches only this one's.

Decision 0187.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from headwater.files.atomic_files import write_atomically
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.place import Place

FILE_NAME = "stop.json"
# On an object store each look is a request.
LOOK_SECONDS = 10.0


def request_stop(state_folder: Place, who: str) -> None:
    """Ask a driver to stop after the batches in flight; it looks every ``LOOK_SECONDS``.

    ``who``: the id of its update, or of the request under which it was started, also where it has not begun yet.
    """
    state_folder.mkdir(parents=True, exist_ok=True)
    write_atomically(state_folder / FILE_NAME, json.dumps({"stop": who}) + "\n")


def is_stop_requested(state_folder: Place, *ids: str | None) -> bool:
    """Whether the driver with these ids, and none before it, is to stop; no where storage can't be read: the next look may."""
    try:
        who = _requested(state_folder)
    except (OSError, *STORE_ERRORS):
        return False
    return bool(who) and who in ids


def withdraw_stop(state_folder: Place, who: str) -> None:
    """Take a request back, before a driver with the same id is started again.

    Raises:
        StoreRefused, StoreUnreachable, OSError: it may be there still, and would stop that driver.
    """
    if _requested(state_folder) == who:
        (state_folder / FILE_NAME).unlink(missing_ok=True)


def _requested(state_folder: Place) -> str:
    """Who is to stop; empty where nobody is."""
    try:
        request = json.loads((state_folder / FILE_NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return ""
    who = request.get("stop") if isinstance(request, dict) else None
    return who if isinstance(who, str) else ""


@contextmanager
def stop_requests(
    state_folder: Place, ids: tuple[str | None, ...], stop: Callable[[], None], *, every: float = LOOK_SECONDS
) -> Iterator[None]:
    """Look for a request to stop this driver while the block runs, and call ``stop`` once there is one.

    ``ids``: of its update and of its request. ``every``: seconds between two looks. A request that was heard is removed when the block ends.
    """
    over, heard = threading.Event(), threading.Event()

    def look() -> None:
        while not over.wait(every):
            if is_stop_requested(state_folder, *ids):
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
            # It names this driver: to the next one it says nothing.
            with suppress(OSError, *STORE_ERRORS):
                (state_folder / FILE_NAME).unlink(missing_ok=True)
