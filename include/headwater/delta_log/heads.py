"""Which table a log is of and its newest version, by the names in the log and the few lines that say so.

delta-rs lists every file of a table when it opens it. Here only what follows the newest certainty is read: a version that was seen
before and is the same file still, or the checksum that Delta writes beside a commit. Where there is neither, and where a log is not
of the plain form (a gap, a checkpoint of several files, a feature that may lay a log out in another way), the table is opened.
Inside one process a log is listed again only where its folder has changed, or the next commit is there.

Decision 0217.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from headwater.delta_log.commits import is_commit
from headwater.storage.walking import names_in

_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")
# What readers have to know of, and what changes nothing in how a log is laid out. Others may: a catalog's commits lie elsewhere.
_PLAIN_FEATURES = frozenset({
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "vacuumProtocolCheck",
    "variantType", "variantType-preview", "variantShredding", "variantShredding-preview",
})  # fmt: skip
_MOST_READER_VERSION = 3
# Of this process. An entry is used only where the commit that it was read from is the same file still.
_SEEN: dict[str, _Seen] = {}
_MOST_SEEN = 10_000

Stamp: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class LogHead:
    """Whose a log is, its newest version, and what readers of that have to know, as a log's ``protocol`` says it."""

    table_id: str
    version: int
    protocol: Any


@dataclass(frozen=True)
class _Seen:
    """A version that was read, with its commit's file and the log's folder as they were before that."""

    head: LogHead
    commit: Stamp
    folder: Stamp

    def is_newest(self, log: str) -> bool:
        """Whether nothing has come or gone since. A mounted store may keep the times of its folders: the next commit is looked for."""
        return (
            _stamp(log) == self.folder
            and _stamp(_commit(log, self.head.version)) == self.commit
            and _stamp(_commit(log, self.head.version + 1)) is None
        )


@dataclass(frozen=True)
class _Segment:
    """The end of a log: the commits that have to be read, without a gap, and which of them have a checksum file."""

    log: str
    commits: range
    checksums: frozenset[int]


@dataclass(frozen=True)
class _Identity:
    """What was read of a table so far, newest first."""

    table_id: str | None = None
    protocol: Any = None

    @property
    def whole(self) -> bool:
        """Whether nothing older has to be read."""
        return self.table_id is not None and self.protocol is not None

    def after(self, older: _Identity) -> _Identity:
        """With what an older version says where the newer ones say nothing."""
        return _Identity(self.table_id or older.table_id, self.protocol or older.protocol)


def log_head(folder: Path, opened: Callable[[], LogHead | None]) -> LogHead | None:
    """The head of the table that a log is of.

    Args:
        folder: ``_delta_log`` on this machine.
        opened: opens the table, and gives its head, or None where there is none. Whatever it raises is raised.
    """
    log = str(folder)
    seen = _SEEN.get(log)
    try:
        if seen is not None and seen.is_newest(log):
            return seen.head
        if seen is not None and _stamp(_commit(log, seen.head.version)) != seen.commit:
            seen = None  # another table lies there now, which may have as many versions
        before = _stamp(log)
        segment = _segment(log, names_in(folder), seen)
        commit = None if segment is None else _stamp(_commit(log, segment.commits.stop - 1))
        identity = _Identity() if segment is None else _identity(segment, seen)
        plain = identity.protocol is None or _is_plain(identity.protocol)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return opened()
    if segment is None or before is None or commit is None or not plain:
        return opened()
    version = segment.commits.stop - 1
    head = LogHead(str(identity.table_id), version, identity.protocol) if identity.whole else opened()
    if head is not None and head.version == version and _is_plain(head.protocol):
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        _SEEN[log] = _Seen(head, commit, before)
    return head


def _segment(log: str, names: Sequence[str], seen: _Seen | None) -> _Segment | None:
    """What follows the version seen, else the newest checkpoint; None where there is a gap, or checkpoints of another form."""
    checkpoints = [name for name in names if ".checkpoint" in name and name[0].isdigit()]
    if not all(map(_CHECKPOINT.fullmatch, checkpoints)) or (not checkpoints and "_last_checkpoint" in names):
        return None
    base = int(max(checkpoints)[:20]) if checkpoints else -1
    known = base if seen is None else seen.head.version
    first = f"{min(base, known) + 1:020}"
    later = [name for name in names if name >= first and is_commit(name)]
    version = int(max(later)[:20]) if later else base
    if version < max(base, known, 0) or len(later) != version - min(base, known):
        return None
    sums = (int(name[:20]) for name in names if name >= first and name.endswith(".crc") and len(name) == 24)
    return _Segment(log, range(known + 1, version + 1), frozenset(sums))


def _identity(segment: _Segment, seen: _Seen | None) -> _Identity:
    """What the commits and checksums say, from the head backwards to where all is known, and else the version seen."""
    identity = _Identity()
    for part in _parts(segment):
        identity = identity.after(part)
        if identity.whole:
            return identity
    if seen is not None:
        return identity.after(_Identity(seen.head.table_id, seen.head.protocol))
    return identity


def _parts(segment: _Segment) -> Iterator[_Identity]:
    """What says something, newest first: each commit, and its checksum."""
    for version in reversed(segment.commits):
        yield _of_commit(_commit(segment.log, version))
        if version in segment.checksums:
            yield _of_checksum(f"{segment.log}/{version:020}.crc")


def _of_commit(file: str) -> _Identity:
    """What a commit changes of it; raises ValueError for one that was not written to its end."""
    data = Path(file).read_bytes().rstrip()
    if data and not isinstance(json.loads(data[data.rfind(b"\n") + 1 :]), dict):
        raise ValueError(f"{file}: the last line is not a JSON object")
    identity = _Identity()
    if b'"metaData"' in data or b'"protocol"' in data:
        for line in data.split(b"\n"):
            if b'"metaData"' in line or b'"protocol"' in line:
                action = json.loads(line)
                if "metaData" in action:
                    identity = replace(identity, table_id=str(action["metaData"]["id"]))
                if "protocol" in action:
                    identity = replace(identity, protocol=action["protocol"])
    return identity


def _of_checksum(file: str) -> _Identity:
    """What the checksum of a version says; one that is damaged says nothing."""
    try:
        sums = json.loads(Path(file).read_bytes())
        return _Identity(str(sums["metadata"]["id"]), sums["protocol"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return _Identity()


def _is_plain(protocol: Any) -> bool:
    features = protocol.get("readerFeatures") or ()
    return int(protocol["minReaderVersion"]) <= _MOST_READER_VERSION and _PLAIN_FEATURES.issuperset(features)


def _commit(log: str, version: int) -> str:
    return f"{log}/{version:020}.json"


def _stamp(file: str) -> Stamp | None:
    try:
        state = Path(file).stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns
