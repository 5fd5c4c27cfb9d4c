"""What a lease needs of an object store: conditional writes, which fail where another process has written meanwhile.

Decision 0092, decision 0184.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from headwater.errors import LeaseUnreachable
from headwater.leases.holder import holder_of
from headwater.storage.atomic import change_text, create_text, read_tagged, store_time
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.object_path import ObjectPath


@dataclass(frozen=True)
class StoredText:
    """An object as it was read. ``tag``: names this very text; ``age``: since it was written, by the store's own clock."""

    text: str
    tag: str
    age: timedelta


class ConditionalStore(Protocol):
    """One object. All methods raise LeaseUnreachable where the store does not answer, StoreRefused where it denies access."""

    def read(self) -> StoredText | None:
        """The object, None where there is none."""

    def write(self, text: str, *, expected: str | None) -> str | None:
        """Write where the object has the tag ``expected`` (None: where there is none); its new tag, or None if refused."""


@dataclass(frozen=True)
class StoredObject:
    """A ``ConditionalStore`` through obstore: S3, Azure and Google alike."""

    place: ObjectPath

    def read(self) -> StoredText | None:
        """As of ConditionalStore. The age is looked up only of a lease that somebody has: the store's clock takes a write."""
        with _unreachable(self):
            seen = read_tagged(self.place, quick=True)
            if seen is None:
                return None
            text, tag, written = seen
            if holder_of(text).get("free"):
                return StoredText(text, tag, timedelta(0))
            clock = self.place.with_name(f"{self.place.name}.clock")
            return StoredText(text, tag, store_time(clock, quick=True) - written)

    def write(self, text: str, *, expected: str | None) -> str | None:
        """As of ConditionalStore."""
        with _unreachable(self):
            if expected is None:
                return create_text(self.place, text, quick=True)
            return change_text(self.place, text, expected, quick=True)

    def __str__(self) -> str:
        return str(self.place)


@contextmanager
def _unreachable(store: StoredObject) -> Iterator[None]:
    try:
        yield
    except StoreUnreachable as error:
        raise LeaseUnreachable(
            f"The lease of this pipeline could not be read or written: {error.what}",
            where=store,
            remedy="Nothing is written without the lease. Check the network and the store, then run the update again.",
        ) from None
