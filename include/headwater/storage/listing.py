"""One listing that answers for a whole folder, so that a look at a pipeline takes a few requests and not hundreds.

Inside ``looked_over(place)`` whatever lies below the place is answered from memory, as it was when the block began. That is for
reading only: a status, a lag, the check for news. Whoever writes looks for himself.

Decision 0185.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.storage import azure
from headwater.storage.conditions import store_errors
from headwater.storage.known_contents import KnownFolder

if TYPE_CHECKING:
    from headwater.storage.object_path import Bucket, ObjectPath
    from headwater.storage.place import Place

Children: TypeAlias = "tuple[dict[str, Listed], set[str]]"
# Stateful streams keep thousands of files here, and no look needs their names.
_SKIPPED = "state"
_LOGS = ("offsets", "commits")


@dataclass(frozen=True)
class Listed:
    """An object of a listing. ``size``: in bytes; ``modified``: seconds since 1970; ``tag``: names its content."""

    size: int
    modified: float
    tag: str | None = None


@dataclass
class Listing:
    """All below a folder. ``folders``: the names directly below each folder; ``skipped``: folders that were not looked into."""

    bucket: Bucket
    key: str
    objects: dict[str, Listed] = field(default_factory=dict)
    folders: dict[str, Children] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    def covers(self, bucket: Bucket, key: str) -> bool:
        """Whether the listing says what is at a key."""
        inside = bucket == self.bucket and f"{key}/".startswith(f"{self.key}/" if self.key else "")
        return inside and not any(f"{key}/".startswith(f"{folder}/") for folder in self.skipped)

    def add(self, key: str, listed: Listed) -> None:
        """Note an object, and the folders that it is in."""
        self.objects[key] = listed
        folder, _, name = key.rpartition("/")
        self.folders.setdefault(folder, ({}, set()))[0][name] = listed
        self.note_folder(folder)

    def without_marks(self) -> Listing:
        """The same without the marks of folders that something lies in."""
        for key in self.objects.keys() & self.folders.keys():
            del self.objects[key]
            folder, _, name = key.rpartition("/")
            self.folders[folder][0].pop(name, None)
        return self

    def note_folder(self, folder: str) -> None:
        """Note a folder in those above it."""
        while folder and folder != self.key:
            above, _, name = folder.rpartition("/")
            below = self.folders.setdefault(above, ({}, set()))[1]
            if name in below:
                return
            below.add(name)
            folder = above


@dataclass
class Look:
    """What is known inside one block: listings of whole folders, and what was read besides, each once."""

    listings: list[Listing]
    children: dict[tuple[Bucket, str], Children] = field(default_factory=dict)
    contents: dict[tuple[Bucket, str], bytes] = field(default_factory=dict)
    folders: dict[tuple[Bucket, str], KnownFolder] = field(default_factory=dict)
    tables: dict[object, Any] = field(default_factory=dict)

    def content(self, bucket: Bucket, key: str) -> bytes | None:
        """What an object holds, as far as it was read in this block, or as it is listed by this machine before."""
        data = self.contents.get((bucket, key))
        listed = self._listed(bucket, key)
        if data is None and listed is not None:
            folder, _, name = key.rpartition("/")
            data = self._folder(bucket, folder).content(name, listed)
        return data

    def keep(self, bucket: Bucket, key: str, tag: str | None, data: bytes) -> None:
        """Note what was read of an object, and the tag that came with it."""
        self.contents[bucket, key] = data
        listed = self._listed(bucket, key)
        if listed is not None:
            folder, _, name = key.rpartition("/")
            self._folder(bucket, folder).keep(name, listed, tag, data)

    def _listed(self, bucket: Bucket, key: str) -> Listed | None:
        return next((one.objects.get(key) for one in self.listings if one.covers(bucket, key)), None)

    def _folder(self, bucket: Bucket, key: str) -> KnownFolder:
        if (bucket, key) not in self.folders:
            self.folders[bucket, key] = KnownFolder.of(bucket, key)
        return self.folders[bucket, key]

    def close(self) -> None:
        """Keep on this machine what was read of listed folders."""
        for (bucket, key), folder in self.folders.items():
            listing = next((one for one in self.listings if one.covers(bucket, key)), None)
            folder.write(listing.folders.get(key, ({}, set()))[0] if listing is not None else {})


_LOOK: ContextVar[Look | None] = ContextVar("headwater_look", default=None)


def current_look() -> Look | None:
    """The look that this block is part of, if any."""
    return _LOOK.get()


@contextmanager
def looked_over(*places: Place) -> Iterator[None]:
    """Answer for what lies below the places from one listing each, while the block runs; local folders are as they are.

    Folders named ``state`` are left out: they are asked for one by one. What else is read on a store is read once. A block
    inside another one belongs to that one.

    Raises:
        StoreRefused, StoreUnreachable: a store can't be listed.
    """
    from headwater.storage.object_path import ObjectPath

    if _LOOK.get() is not None:
        yield
        return
    stored = [place for place in places if isinstance(place, ObjectPath)]
    look = Look(list(map(_listing, stored)))
    token = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(token)
        look.close()


def look_into(folder: Place) -> None:
    """Have this look answer for a folder that it left out (``state``), too, by one listing of it; nothing outside a look.

    Raises:
        StoreRefused, StoreUnreachable: the store can't be listed.
    """
    from headwater.storage.object_path import ObjectPath

    look = _LOOK.get()
    if look is None or not isinstance(folder, ObjectPath):
        return
    if not any(listing.covers(folder.bucket, folder.key) for listing in look.listings):
        look.listings.append(_listing(folder))


def known_object(bucket: Bucket, key: str) -> tuple[Listed | None] | None:
    """What a listing says of a key, in a tuple; None where no listing covers it."""
    look = _LOOK.get()
    for listing in look.listings if look is not None else ():
        if listing.covers(bucket, key):
            return (listing.objects.get(key),)
    return None


def known_children(bucket: Bucket, key: str) -> Children | None:
    """The objects and folders directly below a key, where that is known."""
    look = _LOOK.get()
    if look is None:
        return None
    for listing in look.listings:
        if listing.covers(bucket, key):
            return listing.folders.get(key, ({}, set()))
    return look.children.get((bucket, key))


def _listing(place: ObjectPath) -> Listing:
    import obstore

    listing = Listing(place.bucket, place.key)
    if place.bucket.store.scheme == azure.SCHEME:
        return _listed_at_once(place, listing)
    after: str | None = None
    with store_errors(place):
        while True:
            skipped = None
            pages = obstore.list(place.bucket.client, place.key or None, offset=after, chunk_size=1000)
            for page in pages:
                skipped = next((folder for meta in page if (folder := _noted(listing, meta))), None)
                if skipped is not None:
                    break
            if skipped is None:
                return listing.without_marks()
            listing.skipped.add(skipped)
            listing.note_folder(skipped)
            after = f"{skipped}0"  # the character behind "/": all below the folder sorts before it


def _listed_at_once(place: ObjectPath, listing: Listing) -> Listing:
    """As ``_listing`` where a listing can't begin behind a key: what is skipped comes along."""
    import obstore

    with store_errors(place):
        for page in obstore.list(place.bucket.client, place.key or None, chunk_size=1000):
            for folder in filter(None, (_noted(listing, meta) for meta in page)):
                listing.skipped.add(folder)
                listing.note_folder(folder)
    return listing.without_marks()


def _noted(listing: Listing, meta: Any) -> str | None:
    """Note an object of a page; the folder to leave out where it lies in one."""
    key, size = str(meta["path"]), int(meta["size"])
    names = key[len(listing.key) :].strip("/").split("/")
    if _SKIPPED in names[:-1]:
        inside = "/".join(names[: names.index(_SKIPPED) + 1])
        return f"{listing.key}/{inside}" if listing.key else inside
    if size == 0 and _may_mark_a_folder(names):
        listing.note_folder(key)
    else:
        listing.add(key, Listed(size, meta["last_modified"].timestamp(), meta["e_tag"]))
    return None


def _may_mark_a_folder(names: list[str]) -> bool:
    """Whether an empty object is Hadoop's mark of a folder: a listing shows "offsets/" as "offsets". Entries of logs are no marks."""
    above, name = ["", *names][-2:]
    return "." not in name and not (name.isdigit() and (above in _LOGS or above.isdigit()))
