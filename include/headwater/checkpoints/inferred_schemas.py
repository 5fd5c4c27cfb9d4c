"""The columns that were inferred from files: ``<location>/_schemas/`` has files ``0``, ``1``, ...; the highest is in force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from headwater.checkpoints.rights import not_readable
from headwater.errors import CheckpointUnreadable
from headwater.storage.place import Place
from headwater.storage.walking import in_order

T = TypeVar("T")


def schema_location(state_folder: Place, query: str, read: str) -> Place:
    """Where the columns of a read of files are kept unless it names another folder. ``query``: that of a flow or view."""
    return state_folder / "schemas" / query / read


def locations_of(state_folder: Place, queries: Iterable[str]) -> list[Place]:
    """The locations of the reads of some queries; not those that a read names by itself."""
    folders = [schema_location(state_folder, query, "read").parent for query in queries]
    return [place for folder in folders if folder.is_dir() for place in in_order(folder.iterdir())]


def schema_file(location: Place, version: int) -> Place:
    """The file of a version."""
    return _folder(location) / str(version)


def newest_schema(location: Place, make: Callable[[Any], T]) -> tuple[int, T] | None:
    """The version in force and its columns, None where there is none yet.

    ``make``: makes the columns of their JSON form; ValueError, KeyError and TypeError of it mean that it is none.

    Raises:
        CheckpointUnreadable: the file is damaged.
        StorageNotReadable: it can't be read now.
    """
    folder = _folder(location)
    numbers = [int(p.name) for p in folder.iterdir() if p.name.isdigit()] if folder.is_dir() else []
    if not numbers:
        return None
    file = folder / str(max(numbers))
    try:
        return max(numbers), make(json.loads(file.read_text(encoding="utf-8"))["schema"])
    except OSError as error:
        raise not_readable(file, "which columns the source has", error) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointUnreadable(
            f"The schema can't be read: {error}.",
            where=file,
            remedy="Restore it from a backup, or remove it: "
            + (
                "the version before it is then in force."
                if len(numbers) > 1
                else "the columns are then inferred from all files that are there now, and a new one of them becomes a column."
            ),
        ) from None


def _folder(location: Place) -> Place:
    return location / "_schemas"
