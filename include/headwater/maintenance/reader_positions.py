"""Who reads a table from a position of its own, and from which version on: what vacuum must keep for them.

Readers are found by the Delta id of the table, which every position names, rather than by a list of readers: so
flows that the sources no longer have, and other pipelines in the same storage, count as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.checkpoints.offsets import committed_offsets, last_planned_batch
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.pipeline_spec import ReaderSpec
from headwater.errors import HeadwaterError
from headwater.event_log.reader import last_batches
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.fingerprint import fingerprint_version, source_table
from headwater.storage.place import Place, located, parts_below
from headwater.storage.walking import in_order


@dataclass(frozen=True)
class ReaderPosition:
    """Where one reader of a table stands.

    ``version``: the first commit that it still has to read; ``snapshot``: a version of which it still reads the whole
    content; ``since``: it needs all that was removed after this time (seconds since 1970).
    ``unknown``: why its position is not known.
    """

    reader: str
    version: int | None = None
    snapshot: int | None = None
    since: float | None = None
    unknown: str | None = None


def reader_positions(
    project: PipelineProject, table: Place, table_id: str, *, now: float
) -> list[ReaderPosition]:
    """Every reader of a table that keeps a position.

    Looked at: the live checkpoints of all pipelines in the storage, views that are refreshed by what changed, backfills that are
    not finished, the readers of change feeds, and those that ``maintenance.readers`` of ``pipeline.yml`` declares.

    Args:
        table: the table's folder; ``table_id``: the id that Delta gave it.
        now: seconds since 1970.

    """
    states = in_order((project.storage / "pipelines").glob("*/"))
    return [
        *(position for state in states for position in _flows(state, project.warehouse, table, table_id)),
        *(position for state in states for position in _views(state, project.warehouse, table, table_id)),
        *(position for state in states for position in _backfills(state, project.warehouse, table)),
        *_change_readers(project.storage / "change_feeds" / "readers", table_id),
        *_declared(project, table, table_id, now),
    ]


def _flows(state_folder: Place, warehouse: Place, table: Place, table_id: str) -> Iterator[ReaderPosition]:
    readers = _known_readers(state_folder, warehouse, table)
    seen = set()
    for folder in in_order((state_folder / "checkpoints").glob("*/*/")):
        name = f"the flow {folder.name} of {state_folder.name}"
        seen.add(folder.name)
        try:
            checkpoint = FlowCheckpoint(folder)
            state = checkpoint.surviving_state()
            live = checkpoint.epoch_folder(state.epoch if state else 0)
            yield from _of_checkpoint(name, live, table_id)
        except HeadwaterError as error:
            if error.transient:
                raise
            # A damaged checkpoint may be one of any table's readers, unless the graph is known.
            if readers is None or folder.name in readers:
                yield ReaderPosition(name, unknown=error.what)
    absent = (readers or set()) - seen
    # One that the event log knows has read something, and a repair can find out how far.
    lost = {flow for flow, _ in last_batches(state_folder)} & absent if absent else set()
    for flow in sorted(lost):
        yield ReaderPosition(f"the flow {flow} of {state_folder.name}", unknown="its checkpoint is gone")


def _views(state_folder: Place, warehouse: Place, table: Place, table_id: str) -> Iterator[ReaderPosition]:
    """The materialized views of the last graph that are refreshed by what changed: without it they are recomputed.

    Nothing is lost where one of them is not known, so that views that the graph no longer has keep no files.
    """
    manifest = _manifest(state_folder)
    for flow in manifest.flows if manifest is not None else ():
        if flow.streaming or all(source_table(one, warehouse) != table for one in flow.sources):
            continue
        with suppress(HeadwaterError):
            state = flow_checkpoint(state_folder, flow.target, flow.name).read_state()
            if state is None or not state.refresh.get("follows"):
                continue
            for read in state.input_versions.values():
                version = fingerprint_version(read, table_id)
                if version is not None:
                    yield ReaderPosition(f"the view {flow.name} of {state_folder.name}", version + 1)


def _backfills(state_folder: Place, warehouse: Place, table: Place) -> Iterator[ReaderPosition]:
    """Replaced ranges whose late rows may have to be put back, from the commits that the replacement took along."""
    manifest = _manifest(state_folder)
    tables = {
        entry.name: located(warehouse, entry.location)
        for entry in (manifest.tables if manifest is not None else ())
        if entry.location is not None
    }
    for pending in pending_replacements(state_folder):
        seen = min(pending.known.values(), default=None)
        if seen is not None and tables.get(pending.dataset) == table:
            yield ReaderPosition(f"an unfinished backfill of {pending.dataset}", seen + 1)


def _known_readers(state_folder: Place, warehouse: Place, table: Place) -> set[str] | None:
    """The flows that stream from the table by the last graph, None where that is not known."""
    manifest = _manifest(state_folder)
    if manifest is None:
        return None
    return {
        flow.name
        for flow in manifest.flows
        for source in flow.sources
        if source.streaming and source_table(source, warehouse) == table
    }


def _manifest(state_folder: Place) -> Manifest | None:
    try:
        return read_manifest(state_folder / FILE_NAME)
    except HeadwaterError as error:
        if error.transient:  # it is there, and the next look may read it
            raise
        return None


def _of_checkpoint(reader: str, folder: Place, table_id: str) -> Iterator[ReaderPosition]:
    offsets = committed_offsets(folder)
    if offsets is None:
        if last_planned_batch(folder) is not None and _names_table(folder, table_id):
            yield ReaderPosition(reader, unknown="its first batch was begun and is not done")
        return
    for index in range(len(offsets.sources)):
        offset = offsets.source(index)
        if isinstance(offset, dict) and offset.get("reservoirId") == table_id:
            yield _of_offset(reader, offset)


def _names_table(folder: Place, table_id: str) -> bool:
    for file in (folder / "offsets").glob("[0-9]*"):
        with suppress(FileNotFoundError):  # Spark lets go of old batches
            if table_id.encode() in file.read_bytes():
                return True
    return False


def _of_offset(reader: str, offset: Mapping[str, Any]) -> ReaderPosition:
    version = int(offset["reservoirVersion"])
    if offset.get("isStartingVersion"):
        return ReaderPosition(reader, version + 1, snapshot=version)
    return ReaderPosition(reader, version)


def _change_readers(folder: Place, table_id: str) -> Iterator[ReaderPosition]:
    for file in in_order(folder.rglob("*.json")) if folder.is_dir() else ():
        name = f"the reader of changes {'/'.join((*parts_below(file.parent, folder), file.stem))}"
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            begun, position = record.get("begun"), record.get("position")
            if begun and begun["table_id"] == table_id:
                end = int(begun["end_version"])
                reads_snapshot = bool(begun.get("snapshot"))
                first = end + 1 if reads_snapshot else int(begun["start_version"])
                yield ReaderPosition(name, first, snapshot=end if reads_snapshot else None)
            elif not begun and position and position["table_id"] == table_id:
                yield ReaderPosition(name, int(position["version"]) + 1)
        except FileNotFoundError:
            continue  # its reader was reset just now
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            yield ReaderPosition(name, unknown=f"its position can't be read: {error}")


def _declared(project: PipelineProject, table: Place, table_id: str, now: float) -> Iterator[ReaderPosition]:
    for reader in project.spec.maintenance.readers:
        name = DatasetName.parse(reader.table, catalog=project.spec.catalog, schema=project.spec.schema)
        if located(project.warehouse, name.location) == table:
            yield from _of_declared(project, reader, table_id, now)


def _of_declared(
    project: PipelineProject, reader: ReaderSpec, table_id: str, now: float
) -> Iterator[ReaderPosition]:
    name = f"the declared reader {reader.name}"
    if reader.needs is not None:
        yield ReaderPosition(name, since=now - reader.needs.total_seconds())
    if reader.checkpoint is None:
        return
    try:
        positions = list(_of_checkpoint(name, project.folder / reader.checkpoint, table_id))
    except HeadwaterError as error:
        if error.transient:
            raise
        positions = [ReaderPosition(name, unknown=error.what)]
    yield from positions or [ReaderPosition(name, unknown="its checkpoint has no position in this table")]


def moment_shown(seconds: float) -> str:
    """A time as people read it, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
