"""A place that a pipeline writes to: a path of this machine, or one on an object store.

Decision 0184.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlparse

from headwater.storage.access import SCHEMES, ObjectStore, object_store
from headwater.storage.conditions import StoreRefused
from headwater.storage.object_path import Bucket, ObjectPath

# Local places are ``pathlib.Path`` itself: no wrapper, and not a nanosecond more than without stores.
Place: TypeAlias = Path | ObjectPath


def is_url(text: str) -> bool:
    """Whether a text is the address of an object store that we know."""
    return text.partition("://")[0] in SCHEMES and "://" in text


def place_of(text: str | Place, *, store: ObjectStore | None = None) -> Place:
    """The place that a text names.

    Args:
        text: a path, or ``s3://bucket/key`` (``gs://``, ``abfss://``).
        store: how the store is reached; by the environment where it is not given.

    Raises:
        StoreRefused: an address without a bucket.
    """
    if isinstance(text, ObjectPath | Path):
        return text
    if not is_url(text):
        return Path(text)
    scheme, _, rest = text.partition("://")
    name, _, key = rest.partition("/")
    if not name or any(part in (".", "..") for part in key.split("/")):
        raise StoreRefused(f"{text!a} names no bucket.", remedy="Write s3://bucket/folder.")
    fitting = store if store is not None and store.scheme == scheme else object_store(scheme)
    return ObjectPath(Bucket(fitting, name), key)


def near(place: Place, text: str) -> Place:
    """The place that a text names, reached as ``place`` is where it is on a store of the same kind."""
    return place_of(text, store=place.bucket.store if isinstance(place, ObjectPath) else None)


def located(root: Place, location: str) -> Place:
    """The place of a table as a manifest names it: from the warehouse, or the whole path or address."""
    if isinstance(root, Path) or not (location.startswith("/") or is_url(location)):
        return root / location
    return near(root, location)


def of_spark(place: Place, uri: str) -> Place:
    """The place that a path of Spark's names: ``file:/a/b``, ``s3://bucket/a``, or a plain path. ``place``: a store's settings."""
    if is_url(uri):
        return near(place, unquote(uri))
    return Path(unquote(urlparse(uri).path)) if uri.startswith("file:") else Path(uri)
