"""A place on an object store with the calls of ``pathlib.Path`` that Headwater makes, so that callers need not know which it is.

It is no ``os.PathLike``: what would open it as a file of this machine fails instead of making a folder named ``s3:``.
Errors are those of ``pathlib`` for what is not there, and those of ``storage.conditions`` for the store itself.

Decision 0184.
"""

from __future__ import annotations

import fnmatch
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import total_ordering
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from headwater.storage.access import ObjectStore, client
from headwater.storage.azure_marks import is_marked, without_marks
from headwater.storage.conditions import not_on_a_store, refuse_what_is_no_store, store_errors
from headwater.storage.listing import Listed, current_look, known_children, known_object

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client


@dataclass(frozen=True)
class Bucket:
    """A bucket (a container, of ``abfss``), known by its name. ``known_client``: used instead of the one that the store's settings give."""

    store: ObjectStore = field(compare=False)
    name: str
    known_client: Any = field(default=None, compare=False, repr=False)

    @property
    def access(self) -> ObjectStore:
        """How it is reached now, with what a login says."""
        return self.store.opened()

    @property
    def client(self) -> Client:
        """The client for all requests but those of leases."""
        chosen: Client = self.known_client or client(self.access, self.name)
        return chosen

    @property
    def quick_client(self) -> Client:
        """A client that gives up after seconds."""
        chosen: Client = self.known_client or client(self.access, self.name, quick=True)
        return chosen

    def __str__(self) -> str:
        return f"{self.store.scheme}://{self.name}"


@dataclass(frozen=True)
class ObjectState:
    """As much of ``os.stat_result`` as there is for an object. Times are of its upload, in whole seconds on most stores."""

    st_size: int
    st_mtime: float

    @property
    def st_mtime_ns(self) -> int:
        """The time in nanoseconds."""
        return round(self.st_mtime * 1e6) * 1000


@total_ordering
class ObjectPath:
    """An object, or the folder that a common prefix of keys is."""

    __slots__ = ("bucket", "key")

    def __init__(self, bucket: Bucket, key: str = "") -> None:
        self.bucket = bucket
        self.key = "/".join(part for part in key.split("/") if part not in ("", "."))

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}" if self.key else str(self.bucket)

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __hash__(self) -> int:
        return hash((self.bucket, self.key))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath):
            return NotImplemented
        return (self.bucket, self.key) == (other.bucket, other.key)

    def __lt__(self, other: ObjectPath) -> bool:
        return (str(self.bucket), self.parts) < (str(other.bucket), other.parts)

    def __truediv__(self, name: str | PurePosixPath) -> ObjectPath:
        text = str(name)
        if text.startswith("/") or "://" in text or ".." in text.split("/"):
            raise not_on_a_store(f"The path {text!r}", self)
        return ObjectPath(self.bucket, f"{self.key}/{text}")

    def joinpath(self, *names: str) -> ObjectPath:
        """As ``/``, for several names."""
        return self / "/".join(names)

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket's address and the names in the key."""
        return (str(self.bucket), *(self.key.split("/") if self.key else ()))

    @property
    def name(self) -> str:
        """The last name of the key; empty for the bucket."""
        return self.key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The name from its last dot on."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> ObjectPath:
        """The folder above; of the bucket itself, the bucket."""
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def parents(self) -> tuple[ObjectPath, ...]:
        """The folders above, nearest first."""
        names = self.key.split("/") if self.key else []
        return tuple(ObjectPath(self.bucket, "/".join(names[:end])) for end in range(len(names) - 1, -1, -1))

    def with_name(self, name: str) -> ObjectPath:
        """The place of another name beside this one."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> ObjectPath:
        """The place with another suffix."""
        return self.with_name(self.stem + suffix)

    def is_relative_to(self, other: object) -> bool:
        """Whether it is ``other`` or lies below it; never so for a place on another store or on a disk."""
        return (
            isinstance(other, ObjectPath)
            and self.bucket == other.bucket
            and (not other.key or f"{self.key}/".startswith(f"{other.key}/"))
        )

    def relative_to(self, other: object) -> PurePosixPath:
        """The names from ``other`` to here; raises ValueError where it does not lie below."""
        if not self.is_relative_to(other):
            raise ValueError(f"{str(self)!r} is not below {str(other)!r}")
        assert isinstance(other, ObjectPath)
        return PurePosixPath(self.key[len(other.key) :].lstrip("/"))

    def as_posix(self) -> str:
        """The whole address."""
        return str(self)

    as_uri = as_posix

    def is_absolute(self) -> bool:
        """Always."""
        return True

    def is_symlink(self) -> bool:
        """Never."""
        return False

    def resolve(self) -> ObjectPath:
        """Itself: a store has neither links nor a working directory."""
        return self

    expanduser = absolute = resolve

    # Looking

    def _head(self) -> Listed | None:
        """The object of exactly this key; None where there is none."""
        if not self.key:
            return None
        known = known_object(self.bucket, self.key)
        if known is not None:
            return known[0]
        import obstore

        try:
            with store_errors(self):
                meta = obstore.head(self.bucket.client, self.key)
                refuse_what_is_no_store(meta, self)
        except FileNotFoundError:
            return None
        if meta["size"] == 0 and is_marked(self):
            return None
        return Listed(int(meta["size"]), meta["last_modified"].timestamp(), meta["e_tag"])

    def _children(self) -> tuple[dict[str, Listed], set[str]]:
        """Names of the objects directly below, and of the folders."""
        known = known_children(self.bucket, self.key)
        if known is not None:
            return known
        import obstore

        prefix = f"{self.key}/" if self.key else ""
        with store_errors(self):
            listed = obstore.list_with_delimiter(self.bucket.client, self.key or None)
        files = {
            meta["path"][len(prefix) :]: Listed(
                int(meta["size"]), meta["last_modified"].timestamp(), meta["e_tag"]
            )
            for meta in listed["objects"]
        }
        # Hadoop marks a folder by an object of its name with a slash, which is listed under the folder's own name.
        children = without_marks(
            self,
            (
                {name: listed for name, listed in files.items() if name and "/" not in name},
                {path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"]} - {""},
            ),
        )
        look = current_look()
        if look is not None:
            look.children[self.bucket, self.key] = children
        return children

    def children(self) -> tuple[list[str], list[str]]:
        """The names of the objects and of the folders directly below, sorted; empty where there is nothing."""
        files, folders = self._children()
        return sorted(files), sorted(folders)

    def listed(self) -> dict[str, Listed]:
        """The objects directly below, by name; empty where there are none."""
        return dict(self._children()[0])

    def is_file(self) -> bool:
        """Whether there is an object of this key."""
        return self._head() is not None

    def is_dir(self) -> bool:
        """Whether anything lies below. A folder without anything in it is not there: nothing can tell it from none."""
        files, folders = self._children()
        return bool(files or folders)

    def exists(self) -> bool:
        """Whether it is an object or a folder."""
        return self._head() is not None or self.is_dir()

    def stat(self) -> ObjectState:
        """Size and time of the object; of a folder, zero and the time of the newest object directly in it.

        Raises:
            FileNotFoundError: there is neither.
        """
        listed = self._head()
        if listed is not None:
            return ObjectState(listed.size, listed.modified)
        files, folders = self._children()
        if not files and not folders:
            raise FileNotFoundError(2, "No such object", str(self))
        return ObjectState(0, max((file.modified for file in files.values()), default=0.0))

    def iterdir(self) -> Iterator[ObjectPath]:
        """What lies directly below, sorted; raises FileNotFoundError where nothing does."""
        files, folders = self._children()
        if not files and not folders:
            raise FileNotFoundError(2, "No such folder", str(self))
        for name in sorted({*files, *folders}):
            yield self / name

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """As of ``pathlib``: ``*``, ``?`` and ``[...]`` within a name, ``**`` for any number of folders."""
        only_folders = pattern.endswith("/")
        yield from _matches(self, [part for part in pattern.split("/") if part], only_folders=only_folders)

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """As ``glob`` with ``**/`` before the pattern."""
        yield from self.glob(f"**/{pattern}")

    # Reading and writing

    def read_bytes(self) -> bytes:
        """The object; raises FileNotFoundError."""
        import obstore

        if not self.key:
            raise IsADirectoryError(21, "Is a bucket", str(self))
        known = known_object(self.bucket, self.key)
        if known is not None and known[0] is None:
            raise FileNotFoundError(2, "No such object", str(self))
        look = current_look()
        if look is not None and (data := look.content(self.bucket, self.key)) is not None:
            return data
        try:
            with store_errors(self):
                answer = obstore.get(self.bucket.client, self.key)
                refuse_what_is_no_store(answer.meta, self)
                data = bytes(answer.bytes())
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such object", str(self)) from None
        if look is not None:
            look.keep(self.bucket, self.key, answer.meta["e_tag"], data)
        return data

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The object as text; raises FileNotFoundError and UnicodeDecodeError."""
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, data: bytes) -> int:
        """Replace the object; nobody ever sees half of it, and it is durable before this returns."""
        import obstore

        with store_errors(self):
            obstore.put(self.bucket.client, self.key, data)
        return len(data)

    def write_text(self, text: str, encoding: str = "utf-8") -> int:
        """As ``write_bytes``."""
        return self.write_bytes(text.encode(encoding))

    def open(self, mode: str = "r", encoding: str = "utf-8") -> Any:
        """The whole object as a stream for reading; objects are written in one piece."""
        if mode not in ("r", "rb"):
            raise not_on_a_store("Writing to a file piece by piece", self)
        data = io.BytesIO(self.read_bytes())
        return data if mode == "rb" else io.TextIOWrapper(data, encoding=encoding)

    def touch(self, *, exist_ok: bool = True) -> None:
        """Make an empty object, or give the one that is there a new time."""
        there = self._head()
        if there is not None and not exist_ok:
            raise FileExistsError(17, "Object exists", str(self))
        self.write_bytes(self.read_bytes() if there is not None and there.size else b"")

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object; what lies below its key as below a folder stays."""
        import obstore

        if not missing_ok and self._head() is None:
            raise FileNotFoundError(2, "No such object", str(self))
        try:
            with store_errors(self):
                obstore.delete(self.bucket.client, self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir(self, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there as soon as something lies in it."""

    def rename(self, target: object) -> None:
        """Refused: a store has no rename, and a copy that is killed leaves half; copy, write the record last, remove."""
        raise not_on_a_store(f"Renaming to {target}", self)

    replace = rename


def _matches(folder: ObjectPath, parts: list[str], *, only_folders: bool) -> Iterator[ObjectPath]:
    if not parts:
        return
    part, rest = parts[0], parts[1:]
    files, folders = folder._children()  # noqa: SLF001 - its own module
    if part == "**":
        yield from _matches(folder, rest, only_folders=only_folders)
        for name in sorted(folders):
            yield from _matches(folder / name, parts, only_folders=only_folders)
        return
    fits = re.compile(fnmatch.translate(part)).match
    if rest:
        for name in sorted(folders):
            if fits(name):
                yield from _matches(folder / name, rest, only_folders=only_folders)
        return
    for name in sorted(folders if only_folders else {*files, *folders}):
        if fits(name):
            yield folder / name
