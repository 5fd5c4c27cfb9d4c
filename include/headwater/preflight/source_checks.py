"""Whether a stream's sources are those that it has read so far, in the same order.

Decision 0243.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END
from pathlib import Path
from typing import Any

from headwater.checkpoints.checksums import agrees
from headwater.checkpoints.conditions import FileLogLost, SourceReplaced, SourcesChanged
from headwater.checkpoints.newest_files import is_anothers
from headwater.checkpoints.offsets import (
    BatchOffsets,
    committed_offsets,
    file_log_entries,
    read_file_log_entry,
)
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import table_id
from headwater.errors import CheckpointUnreadable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.read_commits import newest_read
from headwater.storage.object_files import opened
from headwater.storage.place import Place
from headwater.storage.reading_ahead import read_ahead


def source_identity(source: StreamSource, seen: Any = None, offset: Any = None) -> dict[str, Any]:
    """What stays the same as long as a source does; kept in the flow's state (``sources``).

    ``seen``: the identity recorded before; it is kept where the source does not answer now. ``offset``: where the stream stands.
    """
    identity: dict[str, Any] = {"kind": str(source.kind), "name": source.name}
    if source.table is not None:
        return {**identity, "id": table_id(source.table), **newest_read(source.table, offset)}
    if source.kind is SourceKind.KAFKA:
        before = dict(seen.get("topics") or {}) if isinstance(seen, dict) else {}
        names = _topics(source)
        now = source.topics.ids(names) if source.topics is not None and names else {}
        return {**identity, "topics": {**before, **now}}
    return {**identity, "path": source.path} if source.path else identity


def last_offsets(start: FlowStart) -> BatchOffsets | None:
    """The last committed offsets, None where there are none or they can't be read (another check reports it)."""
    try:
        return committed_offsets(start.folder)
    except CheckpointUnreadable:
        return None


def offset_of(start: FlowStart, offsets: BatchOffsets, index: int) -> Any:
    """Where a source stands; None where it has not begun, or it is not known which line of the offset log belongs to it.

    A query that reads one source twice has two lines for it. Those of Delta tables are then found by the table's id.
    """
    sources = start.sources or ()
    try:
        if len(offsets.sources) == len(sources):
            return offsets.source(index)
        source_id = table_id(table) if (table := sources[index].table) is not None else None
        positions = [offsets.source(line) for line in range(len(offsets.sources))]
    except CheckpointUnreadable:
        return None  # another check reports it
    same = [
        o
        for o in positions
        if source_id is not None and isinstance(o, dict) and o.get("reservoirId") == source_id
    ]
    return min(same, key=lambda offset: int(offset["reservoirVersion"]), default=None)


def sources_were_changed(start: FlowStart) -> Iterator[Damage]:
    """Positions are kept by number: with sources swapped, each would be read from the other's position."""
    offsets = last_offsets(start)
    if start.sources is None or offsets is None:
        return
    before = [_label(entry) for entry in start.state.sources]
    now = [_label(source_identity_name(source)) for source in start.sources]
    # The offset log has a line more for each time that a query reads a source again: its length proves nothing.
    counted = bool(before) and len(before) != len(now)
    moved = bool(before) and sorted(before) == sorted(now) and before != now
    if counted or moved:
        how = (
            f"{len(now)} streams, and {len(before)} before"
            if counted
            else "its sources in another order than before, and their positions are kept by number"
        )
        yield Damage(
            SourcesChanged(
                f"{start.flow!r} reads {how}.",
                where=offsets.file,
                remedy="Put the sources back in their order; or give each new source a flow of its own (dp.append_flow); "
                f"or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
            ),
            (f"before: {', '.join(before) or 'not recorded'}", f"now: {', '.join(now)}"),
            (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
        )  # fmt: skip


def topic_was_recreated(start: FlowStart) -> Iterator[Damage]:
    """Spark checks offsets alone: it does not notice a recreated topic that has grown past the old one's end."""
    for source, entry in zip(start.sources or (), start.state.sources, strict=False):
        if (
            source.kind is not SourceKind.KAFKA
            or source.topics is None
            or entry.get("kind") != str(source.kind)
        ):
            continue
        recorded: dict[str, str] = entry.get("topics") or {}
        now = source.topics.ids(sorted(recorded)) if recorded else {}
        for topic in sorted(name for name in recorded if name in now and now[name] != recorded[name]):
            yield Damage(
                SourceReplaced(
                    f"The topic {topic!r} was recreated since {start.flow!r} last read it: its offsets mean other messages now.",
                    where=f"topic {topic}",
                    remedy=f"Read the new topic from its beginning, and keep the rows: {start.command('new-epoch')} --from-start",
                ),
                (f"topic id before: {recorded[topic]}", f"topic id now: {now[topic]}"),
                (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
            )


def file_log_was_lost(start: FlowStart) -> Iterator[Damage]:
    """A file source's position is its list of files: without it all of them are silently read again."""
    offsets = last_offsets(start)
    for index, text in enumerate(offsets.sources if offsets else ()):
        try:
            position = offsets.source(index) if offsets and text else None
        except CheckpointUnreadable:
            continue
        if not isinstance(position, dict) or "logOffset" not in position:
            continue
        folder = start.folder / "sources" / str(index)
        last = int(position["logOffset"])
        absent = missing_entries(start, index, last)
        fault = None if absent else _fault_of_entries(start, index, last)
        if absent or fault:
            yield Damage(
                FileLogLost(
                    f"The list of files that {start.flow!r} has read is not complete: files would be read again, and their rows double.",
                    where=folder,
                    remedy=start.restoring(
                        "take all files that are older than a point in time as read: "
                        f"{start.command('new-epoch')} --from-time TIME"
                    ),
                ),
                (fault or f"entries that are missing: {absent[:10]}", f"position: entry {last}"),
                (Repair.RESTORE, Repair.NEW_EPOCH, Repair.FULL_REFRESH),
            )


def missing_entries(start: FlowStart, index: int, last: int) -> list[int]:
    """The missing entries of a file source's log up to its position."""
    newest_compact, entries = file_log_entries(start.folder, index)
    return [number for number in range(newest_compact + 1, last + 1) if number not in entries]


def _fault_of_entries(start: FlowStart, index: int, last: int) -> str | None:
    """What is wrong with entries that are there; of the compacted one, which may be large, only its end unless all is compared."""
    newest_compact, entries = file_log_entries(start.folder, index)
    folder = start.folder / "sources" / str(index)
    if newest_compact >= 0 and (fault := _fault_of_compacted(folder / f"{newest_compact}.compact", start)):
        return f"entry {newest_compact}.compact {fault}"
    plain = [folder / str(number) for number in sorted(entries) if newest_compact < number <= last]
    read_ahead(plain)
    for entry in plain:
        if fault := _fault_of_entry(entry, start, index):
            return f"entry {entry.name} {fault}"
    return None


def _fault_of_entry(entry: Place, start: FlowStart, index: int) -> str | None:
    """An entry names the files of its own batch, and has one at least; that of a repair may have none."""
    try:
        named = read_file_log_entry(entry)
    except CheckpointUnreadable as error:
        return f"can't be read: {error.what}" if entry.stat().st_size else "is empty"
    if not named and not (entry.name == "0" and start.state.first_batch):
        return "names no file"
    others = sorted({seen.batch_id for seen in named} - {int(entry.name)})
    if others:
        return f"names files of batch {others[0]}"
    if is_anothers(entry, named, start.state.newest_files.get(str(index))):
        return "names other files than after the last run"
    return None if agrees(entry) else "does not agree with its checksum"


def _fault_of_compacted(entry: Place, start: FlowStart) -> str | None:
    if not entry.stat().st_size:
        return "is empty"
    if start.deep:
        try:
            read_file_log_entry(entry)
        except CheckpointUnreadable as error:
            return f"can't be read: {error.what}"
        return None if agrees(entry) else "does not agree with its checksum"
    with entry.open("rb") if isinstance(entry, Path) else opened(entry) as stream:
        stream.seek(-1, SEEK_END)
        return None if stream.read(1) == b"}" else "is cut off"


def source_identity_name(source: StreamSource) -> dict[str, Any]:
    """The part of a source's identity that its owner assigned: Delta's table id, or Kafka's topic ids."""
    return {"kind": str(source.kind), "name": source.name, "path": source.path}


def _label(entry: Any) -> str:
    return f"{entry.get('kind')}:{entry.get('name') or entry.get('path') or ''}"


def _topics(source: StreamSource) -> list[str]:
    names = source.options.get("subscribe", "")
    return [name.strip() for name in names.split(",") if name.strip()]
