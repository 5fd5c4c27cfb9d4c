"""The files of a source on S3, as Spark's file sources find them there: by one listing of each folder that its path names.

Decision 0193.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence

from headwater.errors import SourceUnreachable
from headwater.storage.access import ObjectStore
from headwater.storage.globs import alternatives, plain_part
from headwater.storage.listing import Listed
from headwater.storage.object_files import objects_of
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import place_of

# A pattern of one name; Hadoop spells "none of these" with a caret.
_NOT_IN = re.compile(r"\[\^")


def stored_files(
    path: str, lowered: Mapping[str, str], store: ObjectStore | None
) -> dict[str, tuple[ObjectPath, Listed]]:
    """The objects that a file source would read, by their address.

    Args:
        path: an object, a folder or a glob below ``s3://``.
        lowered: the options of the read, their names in lower case.
        store: how S3 is reached; by the driver's settings or the environment where it is not given.

    Raises:
        SourceUnreachable: the path names nothing; a glob may.
        StoreRefused, StoreUnreachable: the bucket is not there, or can't be listed.
    """
    recursive = lowered.get("recursivefilelookup", "false").lower() == "true"
    names = alternatives(lowered.get("pathglobfilter", "*"))
    files: dict[str, tuple[ObjectPath, Listed]] = {}
    for base, pattern in _bases(path, store):
        try:
            objects = objects_of(base)
        except FileNotFoundError:
            if pattern:
                continue
            raise nothing_at(path) from None
        start = len(base.key) + 1 if base.key else 0
        for key, listed in objects.items():
            parts = key[start:].split("/") if key != base.key else []
            if _is_read(parts, pattern, recursive=recursive) and _fits(key.rpartition("/")[2], names):
                place = ObjectPath(base.bucket, key)
                files[str(place)] = place, listed
    return files


def is_hidden(name: str) -> bool:
    """Whether Spark leaves out a file or folder of this name."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _bases(path: str, store: ObjectStore | None) -> Iterator[tuple[ObjectPath, list[str]]]:
    """What to list, and the patterns of the names below it."""
    for one in alternatives(path):
        folder = plain_part(one)
        place = place_of(folder, store=store)
        assert isinstance(place, ObjectPath)
        yield place, [part for part in one[len(folder) :].split("/") if part]


def _is_read(parts: Sequence[str], pattern: Sequence[str], *, recursive: bool) -> bool:
    """Whether an object below a base is read: its first names match the pattern, and none of the others is left out."""
    depth = len(pattern)
    if len(parts) < depth or not all(map(_matches, parts, pattern)):
        return False
    below = parts[depth:]
    if not below:  # named by the path itself, which hides nothing that is spelled out
        return not pattern or not is_hidden(parts[-1])
    if any(is_hidden(name) for name in below):
        return False
    return recursive or all("=" in folder for folder in below[:-1])


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, _NOT_IN.sub("[!", pattern))


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def nothing_at(path: str) -> SourceUnreachable:
    """The error of an address at or below which nothing lies."""
    return SourceUnreachable(
        f"There is no object at or below {path}.",
        where=path,
        remedy="Check the bucket and the prefix, or upload the first file. A prefix without anything below it is not there, unless "
        "an empty object with its name and a slash marks it as a folder.",
    )
