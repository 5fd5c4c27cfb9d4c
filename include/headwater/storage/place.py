"""A place that a pipeline writes to: a path of this machine, or one on an object store.

Decision 0184, decision 0222.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, unquote, urlparse

from headwater.storage import azure
from headwater.storage.access import SCHEMES, ObjectStore, object_store
from headwater.storage.conditions import StoreRefused, not_on_a_store
from headwater.storage.object_path import Bucket, ObjectPath

# Local places are ``pathlib.Path`` itself: no wrapper, and not a nanosecond more than without stores.
Place: TypeAlias = Path | ObjectPath

# As a URI leaves them: what else is ASCII is percent-encoded.
_URI_SAFE = "/_-!.~'()*:@&=+$,;"
# Other spellings of the scheme, in any case: each file would have two addresses.
S3_SPELLINGS = ("s3", "s3a", "s3n")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What the process of a driver uses for addresses that come out of Spark's plans: it runs one pipeline.
_DRIVERS: dict[str, ObjectStore] = {}


def use_in_this_driver(store: ObjectStore) -> None:
    """Reach the stores of a scheme by the pipeline's settings, for the rest of this process."""
    _DRIVERS[store.scheme] = store


def local_only(place: Place, what: str) -> Path:
    """A place on a disk as it is; raises NotOnAStore of ``what`` (a sentence's subject) for one on a store."""
    if isinstance(place, Path):
        return place
    raise not_on_a_store(what, place)


def is_below(inner: Place, outer: Place) -> bool:
    """Whether a place is another one or lies below it; what is on a disk is below nothing on a store, and the reverse."""
    if isinstance(inner, Path) and isinstance(outer, Path):
        return inner.is_relative_to(outer)
    return isinstance(inner, ObjectPath) and inner.is_relative_to(outer)


def is_url(text: str) -> bool:
    """Whether a text is the address of an object store that we know."""
    return text.partition("://")[0] in SCHEMES and "://" in text


def without_login(address: str) -> str:
    """An address for a message, without the key and the secret that somebody may have written before its bucket."""
    return re.sub(r"//.*@", "//...@", address)


def refuse_escapes(place: Place) -> None:
    """Raise StoreRefused where delta-rs would look for a table elsewhere than Spark: it decodes ``%20`` and the like in a key."""
    if isinstance(place, ObjectPath) and _ESCAPE.search(place.key):
        raise StoreRefused(
            "A per cent sign with two hexadecimal digits in the address of a table is read in two ways.",
            where=place,
            remedy="Choose another name for the folder; blanks and other letters are written as they are. Nothing was written.",
        )


def is_s3(path: str) -> bool:
    """Whether a path is the address of something in S3."""
    return path.startswith("s3://")


def spark_uri(path: str) -> str:
    """An absolute path or an address as ``_metadata.file_path`` and Spark's logs of files show it: encoded as Java does."""
    start = "s3://" if is_s3(path) else ""
    name = path.removeprefix(start)
    encoded = "".join(sign if ord(sign) > 127 else quote(sign, safe=_URI_SAFE) for sign in name)
    return f"{start or 'file:'}{encoded}"


def place_of(text: str | Place, *, store: ObjectStore | None = None) -> Place:
    """The place that a text names.

    Args:
        text: a path, or ``s3://bucket/key`` (``gs://``, ``abfss://``).
        store: how the store is reached; by the environment where it is not given.

    Raises:
        StoreRefused: an address without a bucket, with a name that no bucket has, or with `.` or `..` between its slashes.
    """
    if isinstance(text, ObjectPath | Path):
        return text
    if not is_url(text):
        return Path(text)
    scheme, _, rest = text.partition("://")
    name, _, key = rest.partition("/")
    if not name:
        raise StoreRefused(f"{text!a} names no bucket.", remedy="Write s3://bucket/folder.")
    if any(part in (".", "..") for part in key.split("/")):
        raise StoreRefused(
            f"{text!a} has a part `.` or `..`.", remedy="Write the whole address without them."
        )
    if re.search(r"[\x00-\x1f\x7f]", key):
        raise StoreRefused(
            f"{text!a} has a character that no address has: a line break, a tab or the like.",
            remedy="Write the address without it; a file or a variable that it comes from may end with a line break.",
        )
    if scheme == "s3" and not _BUCKET.fullmatch(name):
        raise StoreRefused(
            f"{without_login(text)!a} names no bucket: the name of one has letters, digits, dots, hyphens and underscores.",
            remedy="Write s3://bucket/folder. Credentials have no place in an address; the environment has them.",
        )
    if scheme == azure.SCHEME:
        azure.account_of(name)
    fitting = (
        store
        if store is not None and store.scheme == scheme
        else _DRIVERS.get(scheme) or object_store(scheme)
    )
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


def parts_below(inner: Place, outer: Place) -> tuple[str, ...]:
    """The names from a place to one below it."""
    return inner.parts[len(outer.parts) :]
