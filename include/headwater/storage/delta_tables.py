"""Opening and appending to Delta tables by delta-rs, wherever they lie.

Decision 0184.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable


def delta_table(place: Place, version: int | None = None) -> DeltaTable:
    """The table at a place, at a version or its newest; raises what delta-rs raises."""
    from deltalake import DeltaTable

    return DeltaTable(str(place), version=version, storage_options=delta_options(place))


def append(place: Place, rows: Any, **how: Any) -> None:
    """``write_deltalake`` to a place; ``how``: its other arguments."""
    from deltalake import write_deltalake

    write_deltalake(str(place), rows, storage_options=delta_options(place), **how)


def delta_options(place: Place) -> dict[str, str] | None:
    """``storage_options`` for a place, None for a local one."""
    return place.bucket.store.delta_options if isinstance(place, ObjectPath) else None
