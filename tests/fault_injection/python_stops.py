"""Stops at commits that delta-rs makes in a driver's own process: it knows nothing of Java's log stores (``Stops.java``)."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import deltalake

from headwater.delta_log.table_history import head_version
from headwater.storage.place import Place, place_of


def stop_python_writers() -> None:
    """Have them stop as Java's do.

    A commit's files and its name are one call, so ``writing`` is before both: without a commit no reader sees the files.
    """
    write = deltalake.write_deltalake

    def stopping(table: Any, *arguments: Any, **options: Any) -> None:
        place = place_of(str(table))
        commit = place / "_delta_log" / f"{head_version(place) + 1:020}.json"
        stop_here_if_wanted("writing", commit)
        write(table, *arguments, **options)
        stop_here_if_wanted("written", commit)

    deltalake.write_deltalake = stopping


def stop_here_if_wanted(moment: str, path: Place) -> None:
    """Stand still for good where the file "stops" wants it, and leave the file that says so."""
    file = Path(os.environ["HEADWATER_STOPS"]) / "stops"
    lines = file.read_text().splitlines() if file.exists() else []
    for number, line in enumerate(lines):
        wanted, _, pattern = line.partition(" ")
        if wanted == moment and re.search(pattern, str(path)):
            file.with_name(str(number)).write_text(str(path))
            threading.Event().wait()
