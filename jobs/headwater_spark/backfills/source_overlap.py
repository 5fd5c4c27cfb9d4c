"""Compare a range of a source with what the live stream has read: no row may be written twice, or ahead of the stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headwater.backfills.backfill_range import BackfillRange, RangeKind
from headwater.backfills.conditions import RangeAlreadyWritten, RangeNotReadYet
from headwater.backfills.live_position import LivePosition, delta_end
from headwater.checkpoints.offsets import kafka_initial_offset
from headwater.metrics.file_listing import ListedFile, list_files
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater_spark.backfills.source_limits import paths_seen

_TIMES = ("modifiedafter", "modifiedbefore")


def check_overlap(chosen: BackfillRange, start: FlowStart, position: LivePosition, *, appends: bool) -> None:
    """Compare a range of the flow's one source with its position.

    Raises:
        RangeNotReadYet: the live stream has yet to read a part of it.
        RangeAlreadyWritten: ``appends``, and the live stream has written a part of it.
    """
    source, end = position.sources[0], position.ends[0]
    read, unread = {
        RangeKind.VERSION: _versions,
        RangeKind.OFFSET: _offsets,
        RangeKind.FILE_TIME: _files,
    }[chosen.kind](chosen, start, source, end)
    if unread:
        raise RangeNotReadYet(
            f"{start.flow!r} has not read {unread} yet: it will write these rows by itself.",
            where=source.name,
            remedy="Let an update read them (headwater run PIPELINE_DIR), or end the range before them.",
        )
    if read and appends:
        raise RangeAlreadyWritten(
            f"{start.flow!r} has read {read}: appended, their rows would be in the table twice.",
            where=source.name,
            remedy="Give --mode merge with --keys, or replace rows by event time: --range event-time --column COLUMN.",
        )


def _versions(chosen: BackfillRange, start: FlowStart, source: StreamSource, end: Any) -> tuple[str, str]:
    first_unread = delta_end(end, source, start.flow)
    start_option = {key.lower(): value for key, value in source.options.items()}.get("startingversion", "0")
    # A stream that began at a time may have read any version.
    first_read = int(start_option) if start_option.isdigit() else 0
    unread = f"versions from {first_unread} on" if chosen.end >= first_unread else ""
    return (f"versions from {first_read} on" if chosen.end >= first_read else ""), unread


def _offsets(chosen: BackfillRange, start: FlowStart, source: StreamSource, end: Any) -> tuple[str, str]:  # noqa: ARG001
    seeded = start.state.first_batch > 0 or start.state.epoch > 0
    initial = None if seeded else kafka_initial_offset(start.folder)
    starts: Mapping[str, Mapping[str, int]] = initial or {}
    ends: Mapping[str, Mapping[str, int]] = end or {}
    read: list[str] = []
    unread: list[str] = []
    for topic, parts in chosen.end.items():
        for part, last in parts.items():
            for bounds, parts_within in ((ends, unread), (starts, read)):
                bound = int(bounds.get(topic, {}).get(part, 0))
                if last > bound:
                    parts_within.append(f"{topic}[{part}] from {bound} on")
    return ", ".join(read), ", ".join(unread)


def _files(chosen: BackfillRange, start: FlowStart, source: StreamSource, end: Any) -> tuple[str, str]:
    options = {key: value for key, value in source.options.items() if key.lower() not in _TIMES}
    inside = [file for file in list_files(source.path or "", options) if _changed_within(file, chosen)]
    expected = {file.path for file in list_files(source.path or "", source.options)} - _excluded(start)
    seen = paths_seen(start.folder, 0, int(end["logOffset"]) if end is not None else -1)
    read = [file.path for file in inside if file.path in seen & expected]
    unread = [file.path for file in inside if file.path in expected - seen]
    return _counted(read), _counted(unread)


def _changed_within(file: ListedFile, chosen: BackfillRange) -> bool:
    # Spark compares modification times by the millisecond.
    millis = file.modified_ns // 1_000_000
    return bool(chosen.start.timestamp() * 1000 <= millis < chosen.end.timestamp() * 1000)


def _excluded(start: FlowStart) -> set[str]:
    """Files that existed before the stream and that it was configured to skip (``includeExistingFiles``)."""
    records = start.checkpoint.folder.glob(f"existing-{start.state.epoch}-*.json")
    return {path for record in records for path in json.loads(record.read_text(encoding="utf-8"))}


def _counted(paths: list[str]) -> str:
    if not paths:
        return ""
    return paths[0] if len(paths) == 1 else f"{len(paths)} files of it (one is {paths[0]})"
