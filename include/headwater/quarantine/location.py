"""The location of a table's quarantine."""

from __future__ import annotations

from headwater.definitions.dataset import quarantine_folder
from headwater.graph.manifest import Manifest
from headwater.quarantine.table import is_quarantine
from headwater.storage.place import Place


def quarantine_location(manifest: Manifest, warehouse: Place, table: str) -> Place | None:
    """The folder of a table's quarantine, even where no rule quarantines any more but rows are left; else None."""
    path = manifest.quarantine_path(warehouse, table)
    if path is None and manifest.dataset(table).location is not None:
        left = manifest.table_path(warehouse, table)
        left = left.with_name(quarantine_folder(left.name))
        path = left if is_quarantine(left) else None
    return path
