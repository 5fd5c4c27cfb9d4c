"""How Hadoop marks folders on a storage account without a hierarchy: by an empty object of the folder's own name.

S3's marks end with a slash, which no key of ours does. These are told from empty files by what was put along with them.

Decision 0212.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.storage import azure
from headwater.storage.conditions import store_errors

if TYPE_CHECKING:
    from headwater.storage.listing import Children
    from headwater.storage.object_path import Bucket, ObjectPath

_MARK = "hdi_isfolder"


def is_marked(place: ObjectPath) -> bool:
    """Whether the object of this very key marks a folder, by one request; never so on other stores than Azure's."""
    return bool(place.key) and place.bucket.store.scheme == azure.SCHEME and _is_mark(place.bucket, place.key)


def without_marks(place: ObjectPath, children: Children) -> Children:
    """The names directly in a folder, marks among the folders; a request for each empty object that no folder goes with."""
    files, folders = children
    if place.bucket.store.scheme != azure.SCHEME:
        return children
    empty = [name for name, listed in files.items() if listed.size == 0]
    marks = {name for name in empty if name in folders or _is_mark(place.bucket, (place / name).key)}
    return {name: listed for name, listed in files.items() if name not in marks}, folders | marks


def _is_mark(bucket: Bucket, key: str) -> bool:
    import obstore

    try:
        with store_errors(f"{bucket}/{key}"):
            answer = obstore.get(bucket.client, key)
            return answer.meta["size"] == 0 and str(answer.attributes.get(_MARK, "")).lower() == "true"
    except FileNotFoundError:
        return False
