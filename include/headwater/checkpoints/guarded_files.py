"""Files that keep others out of a pipeline while something is under way: the journal of a move, the note of a relocation; and names.

A process that stood still past its lease may wake within the write of such a file, when another one has ended what both began: the
file would come back, and say that something is half-way which is not. So on a store it is written only where it still is what
was read under the lease; and it is never removed there, since a file that came and went looks like one that never was. Whoever
ends what was under way writes that into it. On a disk a process that stands still keeps its lock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headwater.checkpoints.record_files import recorded
from headwater.errors import LeaseLost
from headwater.files.atomic_files import write_atomically
from headwater.storage.atomic import read_record, write_if_unchanged
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

_Record = TypeVar("_Record")
_ENDED = "ended"


@dataclass(frozen=True)
class Guarded(Generic[_Record]):
    """A file as it was read. ``record``: None where nothing is under way; ``tag``: of its content on a store, None of no object."""

    file: Place
    record: _Record | None
    tag: str | None


@dataclass(frozen=True)
class GuardedKind(Generic[_Record]):
    """What such files hold. ``parse``, ``words``: as of ``recorded``."""

    parse: Callable[[Any], _Record]
    words: Mapping[str, Any]

    def record(self, file: Place) -> _Record | None:
        """What a file says, for who does not write it; errors as of ``recorded``."""
        return recorded(file, self._record_of, **self.words)

    def seen(self, file: Place) -> Guarded[_Record]:
        """A file as it is now; errors as of ``recorded``."""
        tags: list[str | None] = []

        def read(place: Place) -> str:
            text, tag = read_record(place)
            tags.append(tag)
            return text

        record = recorded(file, self._record_of, read=read, **self.words)
        return Guarded(file, record, next(iter(tags), None))

    def _record_of(self, data: Any) -> _Record | None:
        return None if isinstance(data, dict) and _ENDED in data else self.parse(data)


def seen_text(file: Place) -> Guarded[str]:
    """A file as it is now, whatever it says: for who replaces it."""
    try:
        return Guarded(file, *read_record(file))
    except FileNotFoundError:
        return Guarded(file, None, None)


def write_guarded(seen: Guarded[Any], text: str) -> None:
    """Replace the file, durably; raises LeaseLost where another process has written it since."""
    if not isinstance(seen.file, ObjectPath):
        write_atomically(seen.file, text)
    elif not write_if_unchanged(seen.file, text, seen.tag):
        raise LeaseLost(
            f"Another process has written {seen.file.name} while this one was about to.",
            where=seen.file,
            remedy="What it wrote stays. Run the same command again once nothing else runs.",
        )


def end_guarded(seen: Guarded[Any], by: str) -> None:
    """Say that nothing is under way any more; errors as of ``write_guarded``. ``by``: the id of what has ended."""
    if isinstance(seen.file, ObjectPath):
        write_guarded(seen, json.dumps({_ENDED: by}) + "\n")
    else:
        seen.file.unlink(missing_ok=True)
