"""Small objects of checkpoints that this machine has read before: a look asks the store only for what is new.

A listing gives size, time and tag of each object. Where all three are those under which an object was read before, its content is that of
then. What was read lies in the cache of this machine, one file for each folder of the store, with the names that the folder has now.

Decision 0242.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headwater.storage.local_cache import cache_root

if TYPE_CHECKING:
    from headwater.storage.listing import Listed
    from headwater.storage.object_path import Bucket

# Size, time and tag of an object.
Stamp: TypeAlias = "tuple[int, float, str | None]"
# The list of a hundred thousand files that were read has more; it is read again, by one request.
MOST_BYTES = 1 << 20
_UNUSED_SECONDS = 7 * 86400


@dataclass
class KnownFolder:
    """What is known of the objects of one folder: name to size, time and tag of the listing, and the content."""

    file: Path
    contents: dict[str, tuple[Stamp, bytes]] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def of(cls, bucket: Bucket, folder: str) -> KnownFolder:
        """What was read in a folder before; nothing where that can't be read."""
        whose = f"{bucket.access.endpoint} {bucket}/{folder}"
        file = cache_root() / "objects" / f"{hashlib.sha256(whose.encode()).hexdigest()[:32]}.json"
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
            return cls(
                file,
                {name: (_stamp(*about), base64.b64decode(data)) for name, (about, data) in known.items()},
            )
        except (OSError, ValueError, TypeError, AttributeError):
            return cls(file)

    def content(self, name: str, listed: Listed) -> bytes | None:
        """What an object holds that is still as the listing says; None where it was not read as such."""
        before, data = self.contents.get(name, (None, b""))
        return data if before == _stamp_of(listed) and listed.tag is not None else None

    def keep(self, name: str, listed: Listed, tag: str | None, data: bytes) -> None:
        """Note what was read, and with which tag: an object that was replaced since it was listed is not noted."""
        if tag is not None and tag == listed.tag and len(data) <= MOST_BYTES:
            self.contents[name] = (_stamp_of(listed), data)
            self.changed = True

    def write(self, there: Mapping[str, Listed]) -> None:
        """Write what is known of the objects that are there; a cache that can't be written to is done without."""
        if not self.changed:
            return
        with suppress(OSError):
            if not self.file.exists():
                _make_room(self.file.parent)
            kept = {
                name: (stamp, base64.b64encode(data).decode())
                for name, (stamp, data) in self.contents.items()
                if name in there and stamp == _stamp_of(there[name])
            }
            making = self.file.with_name(f".{self.file.name}.{secrets.token_hex(6)}")
            making.write_text(json.dumps(kept), encoding="utf-8")
            making.replace(self.file)


def _stamp(size: int, modified: float, tag: str) -> Stamp:
    return size, modified, tag


def _stamp_of(listed: Listed) -> Stamp:
    return listed.size, listed.modified, listed.tag


def _make_room(home: Path) -> None:
    """Make the folder; what nobody has written to for days goes: its flow does not run from here any more."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in home.iterdir():
        with suppress(FileNotFoundError):  # another process removes them, too
            if time.time() - file.stat().st_mtime > _UNUSED_SECONDS:
                file.unlink()
