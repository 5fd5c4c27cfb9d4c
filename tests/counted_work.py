"""What a piece of Python does, counted: seconds differ from machine to machine, these figures do not."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

_EVENTS = {"open": "opened", "os.scandir": "listed", "os.listdir": "listed"}
_watchers: list[Counter[str]] = []


def _note(event: str, _: tuple[object, ...]) -> None:
    if event in _EVENTS:
        for watcher in _watchers:
            watcher[_EVENTS[event]] += 1


# Python has no way to take a hook away again: one for all of a process's tests.
sys.addaudithook(_note)


@dataclass(frozen=True)
class Work:
    """Files that were opened, folders that were listed, and functions of Python that were called in this thread and new ones."""

    opened: int
    listed: int
    calls: int


def counted_work(do: Callable[[], object]) -> Work:
    """Do it once, to load what it needs, and once more, counted."""
    do()
    counts: Counter[str] = Counter()

    def on_call(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            counts["calls"] += 1

    before = sys.getprofile()
    _watchers.append(counts)
    threading.setprofile(on_call)
    sys.setprofile(on_call)
    try:
        do()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
        _watchers.remove(counts)
    return Work(counts["opened"], counts["listed"], counts["calls"])
