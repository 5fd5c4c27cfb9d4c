"""The objects at or below a place of a store as files: what a reader of a folder on a disk would find there.

Decision 0193.
"""

from __future__ import annotations

import io
from typing import Any

from headwater.storage.conditions import store_errors
from headwater.storage.listing import Listed
from headwater.storage.mirrors import remembered
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

# What a reader of a header or a footer fetches at a time.
_PART_BYTES = 64 << 10


def objects_of(place: ObjectPath) -> dict[str, Listed]:
    """Every object at or below a place, by its key, without the marks of folders; listed once in a block of ``looked_over``.

    One request for a thousand objects; one listing more for each folder in which an object is empty, since it may be the mark of
    a folder; and one request where nothing lies below: the place may be an object itself.

    Raises:
        FileNotFoundError: there is neither an object, nor a mark of a folder, nor anything below.
        StoreRefused, StoreUnreachable: the store can't be listed, whole; a part of it is never returned.
    """
    listed: dict[str, Listed] = remembered((place, "objects"), lambda: _objects_of(place))
    return listed


def anything_at(place: ObjectPath) -> bool:
    """Whether there is an object at or below a place, by one request; by two where nothing lies below.

    Raises:
        StoreRefused, StoreUnreachable: the store does not answer, or denies access.
    """
    import obstore

    with store_errors(place):
        for page in obstore.list(place.bucket.client, place.key or None, chunk_size=1):
            if page:
                return True
    return place.is_file()


def refuse_missing_bucket(place: Place) -> None:
    """One request that asks whether the bucket of a place is there and may be listed; nothing for a folder of this machine.

    Raises:
        StoreRefused: it is not there, or access is denied.
        StoreUnreachable: the store does not answer.
    """
    if isinstance(place, ObjectPath):
        anything_at(place)


def opened(place: ObjectPath) -> io.BufferedReader:
    """An object as a stream that fetches no more than is read; raises FileNotFoundError."""
    return io.BufferedReader(_Ranges(place), _PART_BYTES)


class _Ranges(io.RawIOBase):
    """An object of which each read fetches the bytes that it wants."""

    def __init__(self, place: ObjectPath) -> None:
        super().__init__()
        self._place = place
        self._size = place.stat().st_size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        import obstore

        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        with store_errors(self._place):
            part = bytes(
                obstore.get_range(self._place.bucket.client, self._place.key, start=self._at, end=end)
            )
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def _objects_of(place: ObjectPath) -> dict[str, Listed]:
    import obstore

    files: dict[str, Listed] = {}
    folders: set[str] = set()
    marked = False
    with store_errors(place):
        for page in obstore.list(place.bucket.client, place.key or None, chunk_size=1000):
            for meta in page:
                key = str(meta["path"])
                if key == place.key:
                    marked = True
                    continue
                files[key] = Listed(int(meta["size"]), meta["last_modified"].timestamp(), meta["e_tag"])
                folders.add(key.rpartition("/")[0])
    if not files:
        return {} if marked else _alone(place)
    _drop_marks(place, files, folders)
    return files


def _alone(place: ObjectPath) -> dict[str, Listed]:
    listed = place._head()  # noqa: SLF001 - the seam itself
    if listed is None:
        raise FileNotFoundError(2, "No such object", str(place))
    return {place.key: listed}


def _drop_marks(place: ObjectPath, files: dict[str, Listed], folders: set[str]) -> None:
    """Take the marks of folders out: "a/" is listed as "a", and only a listing of the folder that it lies in tells the two apart."""
    empty = [key for key, listed in files.items() if listed.size == 0]
    above = folders | {key[:end] for key in folders for end in _slashes(key)}
    for key in [key for key in empty if key in above]:
        del files[key]
    for folder in {key.rpartition("/")[0] for key in empty if key in files}:
        names, marks = ObjectPath(place.bucket, folder)._children()  # noqa: SLF001 - the seam itself
        for key in empty:
            parent, _, name = key.rpartition("/")
            if parent == folder and name in marks and name not in names:
                files.pop(key, None)


def _slashes(key: str) -> list[int]:
    return [index for index, sign in enumerate(key) if sign == "/"]
