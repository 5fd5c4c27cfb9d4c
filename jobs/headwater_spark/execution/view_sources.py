"""What a view's sources are at before anything of them is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headwater.delta_log.commits import commit_written
from headwater.delta_log.versions import snapshot_files, table_head
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import FlowEntry
from headwater.incremental.costs import SourceSize
from headwater.incremental.source_changes import SourceChange
from headwater.metrics.fingerprint import source_fingerprint, source_key, source_table
from headwater.storage.place import Place
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.views.examined_query import NotedTable


def fingerprints(context: UpdateContext, entry: FlowEntry) -> dict[str, str] | None:
    """What each source of a batch flow is at, None where that can't be known of one of them."""
    known: dict[str, str] = {}
    for source in entry.sources:
        fingerprint = source_fingerprint(source, context.pipeline.project.warehouse)
        if fingerprint is None:
            return None
        known[source_key(source)] = fingerprint
    return known


def readers(context: UpdateContext, flows: Iterable[str]) -> Counter[Place]:
    """How many of these flows read each table as a batch, by its folder."""
    warehouse = context.pipeline.project.warehouse
    names = set(flows)
    entries = [entry for entry in context.pipeline.manifest.flows if entry.name in names]
    folders = ({source_table(s, warehouse) for s in entry.sources if not s.streaming} for entry in entries)
    return Counter(folder for known in folders for folder in known if folder is not None)


def noted_tables(context: UpdateContext, entry: FlowEntry) -> list[NotedTable]:
    """The sources that are Delta tables, at the versions that a refresh reads them at."""
    noted = {}
    for source in entry.sources:
        folder = source_table(source, context.pipeline.project.warehouse)
        if folder is None or source.streaming or folder in noted:
            continue
        head = table_head(folder)
        if head is not None:
            written = commit_written(folder, head.version)
            noted[folder] = NotedTable(str(source.location), folder, head, written)
    return list(noted.values())


def other_sources(context: UpdateContext, entry: FlowEntry) -> dict[str, str | None]:
    """What the sources are at that are not Delta tables, by their keys; None where that can't be known."""
    warehouse = context.pipeline.project.warehouse
    return {
        source_key(source): source_fingerprint(source, warehouse)
        for source in entry.sources
        if source_table(source, warehouse) is None
    }


def table_bytes(table: NotedTable) -> int | None:
    """The size of a table's files at the version that is read; None where its log can't be read."""
    try:
        return sum(file.bytes for file in snapshot_files(table.folder, table.head.version))
    except SourceUnreachable:
        return None


def source_size(table: NotedTable, change: SourceChange) -> SourceSize:
    """How large a table is, and how much of it changed."""
    return SourceSize(table.key, table_bytes(table) or change.changed_bytes, change.changed_bytes)
