"""What a source is at, as a text that changes when its content does: for flows that read all of it each time."""

from __future__ import annotations

import hashlib
import os

from headwater.definitions.source import SourceKind
from headwater.delta_log.versions import last_change, table_head
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import SourceEntry
from headwater.metrics.file_listing import list_files
from headwater.storage.access import ObjectStore
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.place import Place, located


def source_key(source: SourceEntry) -> str:
    """The name of a source in ``FlowState.input_versions``."""
    return f"{source.kind}:{source.name or source.location or source.path or source.format}"


def source_table(source: SourceEntry, warehouse: Place) -> Place | None:
    """The folder of a source that is a table, None for one that is not."""
    if source.kind not in (SourceKind.DATASET, SourceKind.DELTA) or source.location is None:
        return None
    return located(warehouse, source.location)


def source_fingerprint(
    source: SourceEntry, warehouse: Place, *, store: ObjectStore | None = None
) -> str | None:
    """What the source is at now; None where that can't be known.

    Take it before the source is read: what arrives meanwhile is then read again, never missed.
    Delta: ``<table id>@<version>~<milliseconds>`` of the last commit that changed rows or schema, the time where the commit says it: a
    table that was brought back from a copy has other commits under the same numbers (decision 0220). Files: a digest of the listing.
    ``store``: how S3 is reached, for files there.
    """
    table = source_table(source, warehouse)
    if table is not None:
        return _table_fingerprint(table)
    if source.kind is SourceKind.FILES and source.path:
        try:
            files = list_files(source.path, source.options, store=store)
        except (SourceUnreachable, *STORE_ERRORS):
            return None
        digest = hashlib.sha256()
        for file in files:
            # Times on a store are whole seconds: an object that is overwritten at once has another tag.
            state = f"{file.size}\0{file.modified_ns}" + (f"\0{file.tag}" if file.tag else "")
            digest.update(os.fsencode(file.path) + f"\0{state}\n".encode())
        return "files:" + digest.hexdigest()
    return None


def fingerprint_version(fingerprint: str, table_id: str) -> int | None:
    """The version in a table's fingerprint, None where it is of another table or another kind."""
    identity, _, version = fingerprint.partition("~")[0].rpartition("@")
    return int(version) if identity == table_id and version.isdigit() else None


def _table_fingerprint(table: Place) -> str | None:
    head = table_head(table)
    if head is None:
        return None
    changed = last_change(table, head.version, metadata_too=True)
    if changed is None:
        return f"{head.table_id}@{head.version}"
    when = "" if changed.written is None else f"~{changed.written}"
    return f"{head.table_id}@{changed.version}{when}"
