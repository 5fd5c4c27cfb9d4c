"""A right that is missing is no damage: the file is whole, and must neither be moved aside nor be written anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.checkpoints.atomic_files import who_asks, whose
from headwater.checkpoints.conditions import CheckpointDenied
from headwater.checkpoints.damage import Damage

if TYPE_CHECKING:
    from headwater.checkpoints.flow_start import FlowStart

# What Spark keeps in an epoch and a check reads.
_PARTS = ("metadata", "offsets", "commits", "sources", "state")


def denied(file: Path, what: str) -> CheckpointDenied:
    """The error for a file that this user must not read. ``what``: what can't be known without it."""
    place = first_denied(file) or file
    return CheckpointDenied(
        f"It can't be read {what}: {who_asks()} has no right to ({whose(place)}).",
        where=place,
        remedy="Run as the user that writes the storage, or give this one the right to read and write it. The file is not "
        "damaged: leave it where it is.",
    )


def first_denied(file: Path) -> Path | None:
    """The first folder above a file that this user can't look into, else the file where it can't be read; None else."""
    for folder in reversed(file.parents):
        if not _allowed(folder, os.X_OK):
            return folder
    wanted = os.R_OK | os.X_OK if file.is_dir() else os.R_OK
    return None if not file.exists() or _allowed(file, wanted) else file


def checkpoint_is_denied(start: FlowStart) -> Iterator[Damage]:
    """Whether this user may read the live epoch; without that, every other check would take it for damaged."""
    places = [start.checkpoint.folder, start.folder, *(start.folder / name for name in _PARTS)]
    for log in ("offsets", "commits"):
        folder = start.folder / log
        if first_denied(folder) is None and folder.is_dir():
            newest = sorted(
                (path for path in folder.iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
            )
            places += newest[-2:]
    found = next((place for place in places if first_denied(place) is not None), None)
    if found is not None:
        yield Damage(denied(found, f"where {start.flow!r} stands"), (whose(found),))


def _allowed(path: Path, mode: int) -> bool:
    try:
        path.stat()
    except PermissionError:
        return False
    except OSError:
        return True  # it is not there
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
