"""Writing to a store under a condition: only where nothing is there, or only where nobody else has written since.

A local file is replaced by ``headwater.files.atomic_files``, which calls ``write_text`` of a place on a store: a put is atomic.

Decision 0184.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from headwater.storage.conditions import StoreRefused, StoreUnreachable, refuse_what_is_no_store, store_errors
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

_CONFLICTS = 6
# Of no object. Azure refuses tags without quotation marks as such.
_NO_TAG = '"none"'


class _Undecided(Exception):
    """Neither was it written, nor is there what would have prevented it."""


def create_text(place: ObjectPath, text: str, *, quick: bool = False) -> str | None:
    """Write an object where there is none.

    Args:
        place: where.
        text: its whole content.
        quick: give up after seconds instead of minutes.

    Returns:
        The new object's tag, None where there is one already.

    Raises:
        StoreUnreachable: it may be written or not; read it to know.

    """
    return _decided(partial(_create, place, text, quick=quick), place)


def _decided(write: Callable[[], str | None], place: ObjectPath) -> str | None:
    """What a conditional write gives, which is tried again while it raises _Undecided."""
    from tenacity import (
        RetryError,
        Retrying,
        retry_if_exception_type,
        stop_after_attempt,
        wait_random_exponential,
    )

    tries = Retrying(
        retry=retry_if_exception_type(_Undecided),
        stop=stop_after_attempt(_CONFLICTS),
        wait=wait_random_exponential(0.1, max=2),
    )
    try:
        tag: str | None = tries(write)
    except RetryError:
        raise StoreUnreachable(
            f"The store answered {_CONFLICTS} times that another request is writing this object, and none has.",
            where=place,
        ) from None
    return tag


def _create(place: ObjectPath, text: str, *, quick: bool) -> str | None:
    """As ``create_text``; raises _Undecided where the store refused, and nothing is there.

    A store may answer 409 to say that another request for the key is under way, which may fail; the client does not tell that from
    412, which says that the object is there.
    """
    tag = _put(place, text, "create", quick=quick)
    if tag is None and read_tagged(place, quick=quick) is None:
        raise _Undecided
    return tag


def change_text(place: ObjectPath, text: str, tag: str, *, quick: bool = False) -> str | None:
    """As ``create_text``, where the object is still the one of ``tag``; None where it is another one or gone."""
    return _decided(partial(_change, place, text, tag, quick=quick), place)


def _change(place: ObjectPath, text: str, tag: str, *, quick: bool) -> str | None:
    """As ``change_text``; raises _Undecided where the store refused, and the object is the one that it was to be."""
    new = _put(place, text, {"e_tag": tag}, quick=quick)
    if new is None:
        seen = read_tagged(place, quick=quick)
        if seen is not None and seen[1] == tag:
            raise _Undecided
    return new


def write_if_unchanged(place: ObjectPath, text: str, tag: str | None) -> bool:
    """Write an object where it still has a tag (None: where there is none), also where the answer to a write gets lost.

    Args:
        place: where.
        text: its whole content, unlike any that another process writes.
        tag: as of ``read_tagged``.

    Returns:
        Whether the object is the one of ``text`` now.

    Raises:
        StoreUnreachable: it may be written or not; read it to know.
    """
    try:
        done = create_text(place, text) if tag is None else change_text(place, text, tag)
    except StoreUnreachable:
        if _has(place, text):
            return True
        raise
    return done is not None or _has(place, text)


def _has(place: ObjectPath, text: str) -> bool:
    """Whether an object is there with this content, whatever a look has seen before."""
    seen = read_tagged(place)
    return seen is not None and seen[0] == text


def read_tagged(place: ObjectPath, *, quick: bool = False) -> tuple[str, str, datetime] | None:
    """The text of an object, its tag and the time of its upload by the store's clock; None where there is none."""
    import obstore

    try:
        with store_errors(place):
            client = place.bucket.quick_client if quick else place.bucket.client
            answer = obstore.get(client, place.key)
            meta = answer.meta
            refuse_what_is_no_store(meta, place)
            data = bytes(answer.bytes())
    except FileNotFoundError:
        return None
    return data.decode("utf-8", errors="replace"), str(meta["e_tag"]), meta["last_modified"]


def read_record(place: Place) -> tuple[str, str | None]:
    """The text of a file or an object, and the object's tag; raises FileNotFoundError."""
    if not isinstance(place, ObjectPath):
        return place.read_text(encoding="utf-8"), None
    seen = read_tagged(place)
    if seen is None:
        raise FileNotFoundError(2, "No such object", str(place))
    return seen[0], seen[1]


def store_time(place: ObjectPath, *, quick: bool = False) -> datetime:
    """The time by the store's own clock: that of an object which is written for it, at ``place``."""
    import obstore

    with store_errors(place):
        client = place.bucket.quick_client if quick else place.bucket.client
        obstore.put(client, place.key, b"")
        moment: datetime = obstore.head(client, place.key)["last_modified"]
    return moment


def refuse_without_conditions(folder: ObjectPath, by: str | None = None) -> None:
    """Try both kinds of conditional write below a folder.

    Args:
        folder: where.
        by: a name of whoever tries, and of nobody else at this time: what an outage leaves of this try goes with the next one.

    Raises:
        StoreRefused: the store ignores conditions, so that two updates could hold one lease, or write one commit.
    """
    probe = folder / f".probe-{by or secrets.token_hex(8)}"
    try:
        # A refusal alone says little: the answer to the first try may have got lost, and the client's second one met its own object.
        first = write_if_unchanged(probe, "1", None)
        if not first or create_text(probe, "2") is not None or change_text(probe, "3", _NO_TAG) is not None:
            raise StoreRefused(
                "This store ignores conditional writes: what is there already was overwritten.",
                where=folder,
                remedy="Nothing of a pipeline was written. Use a store that honours `If-None-Match: *` and `If-Match` (Amazon S3 "
                "does, and newer versions of most servers), or a shared folder.",
            )
    finally:
        probe.unlink(missing_ok=True)


def _put(place: ObjectPath, text: str, mode: Any, *, quick: bool) -> str | None:
    import obstore
    from obstore import exceptions as o

    try:
        with store_errors(place, conditional=True):
            client = place.bucket.quick_client if quick else place.bucket.client
            done = obstore.put(client, place.key, text.encode(), mode=mode, use_multipart=False)
    except (FileExistsError, FileNotFoundError, o.AlreadyExistsError, o.PreconditionError):
        return None
    return str(done["e_tag"])
