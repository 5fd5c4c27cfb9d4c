"""Delta tables that are read at a version that was noted before, whatever others commit meanwhile.

Decision 0163.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from headwater.storage.place import Place, is_url, of_spark, place_of

_NONE: Mapping[Place, int] = {}
_VERSIONS: ContextVar[Mapping[Place, int]] = ContextVar("headwater_pinned_tables", default=_NONE)
# A read with one of these says itself which versions it is of.
_OF_A_VERSION = frozenset(
    {
        "versionasof",
        "timestampasof",
        "readchangefeed",
        "readchangedata",
        "startingversion",
        "startingtimestamp",
    }
)


@contextmanager
def pinned_tables(versions: Mapping[Place, int]) -> Iterator[None]:
    """Have batch reads inside the block, of this thread, take these versions of tables, by their folders."""
    token = _VERSIONS.set(versions)
    try:
        yield
    finally:
        _VERSIONS.reset(token)


def pinned_version(path: Any, options: Mapping[str, str]) -> int | None:
    """The version at which the table in a folder is read; None where it is read as it stands.

    Args:
        path: as the read names it.
        options: of the read, with keys in lower case.
    """
    versions = _VERSIONS.get()
    if not versions or not isinstance(path, str) or not options.keys().isdisjoint(_OF_A_VERSION):
        return None
    return versions.get(place_of(path) if is_url(path) else of_spark(Path(), path))
