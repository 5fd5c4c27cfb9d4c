"""A missing permission is not damage: the file is intact, and must be neither moved aside nor rewritten.

Decision 0136.
"""

from __future__ import annotations

import os
from pathlib import Path

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.files.atomic_files import who_asks, whose
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

_OUT_OF_THE_WAY = "Move it away, and put back from a backup what belongs there."


def not_readable(file: Place, what: str, error: OSError | None = None) -> StorageNotReadable:
    """The error for a file that can't be read now. ``what``: what can't be known without it; ``error``: what the system said."""
    reason = f"{error.strerror or error}: " if error is not None else ""
    place = first_denied(file) or file
    if error is None or isinstance(error, PermissionError):
        reason += f"{who_asks()} has no right to ({whose(place)})"
        remedy = "Run as the user that writes the storage, or give this one the right to read and write it."
    elif type(error) in _NEEDED:
        return StorageNotReadable(
            f"It is not known {what}: {reason}{file}.",
            where=file,
            remedy=f"{_NEEDED[type(error)]}. {_OUT_OF_THE_WAY}",
        )
    else:
        reason += str(file)
        remedy = "Make the storage available and run it again."
    return StorageNotReadable(
        f"It is not known {what}: {reason}.",
        where=place,
        remedy=f"{remedy} The file is not damaged: leave it where it is.",
    )


_NEEDED: dict[type[OSError], str] = {
    NotADirectoryError: "A file lies where a folder is needed",
    IsADirectoryError: "A folder lies where a file is needed",
}


def denied(error: OSError) -> StorageNotReadable:
    """The error for a right that is missing, or for a file and a folder in each other's place, where nothing else is known."""
    file = Path(str(error.filename)) if error.filename else None
    if type(error) in _NEEDED:
        return StorageNotReadable(f"{_NEEDED[type(error)]}.", where=file, remedy=_OUT_OF_THE_WAY)
    place = (first_denied(file) or file) if file is not None else None
    return StorageNotReadable(
        f"{error.strerror or 'Permission denied'}: {who_asks()} has no right to {place or 'a file'}"
        + (f" ({whose(place)})." if place is not None else "."),
        where=file,
        remedy="Run as the user that writes it, or give this one the right to read and write it. Nothing of it is damaged.",
    )


def first_denied(file: Place) -> Place | None:
    """The first folder above a file that this user can't look into, else the file where it can't be read; None else."""
    if isinstance(file, ObjectPath):
        return None  # a store says no by an error of its own
    for folder in reversed(file.parents):
        if not _allowed(folder, os.X_OK):
            return folder
    access = os.R_OK | os.X_OK if file.is_dir() else os.R_OK
    return None if not file.exists() or _allowed(file, access) else file


def _allowed(path: Path, mode: int) -> bool:
    try:
        path.stat()
    except PermissionError:
        return False
    except OSError:
        return True  # it is not there
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
