"""What a file source has read, as lines of Spark's log: from a checkpoint, or by the files' age."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.checkpoints.offsets import file_log_entries, files_seen
from headwater.errors import CheckpointUnreadable
from headwater.metrics.file_listing import list_files
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.source_checks import missing_entries
from headwater.storage.place import Place, is_s3, spark_uri

Lines = list[dict[str, Any]]


def file_offset(text: str | None) -> int | None:
    """The entry that a file source stands at, None for other sources."""
    try:
        value = json.loads(text) if text else None
    except json.JSONDecodeError:
        return None
    return int(value["logOffset"]) if isinstance(value, dict) and "logOffset" in value else None


def lines_of_log(checkpoints: Sequence[Place], start: FlowStart, index: int, last: int) -> Lines | None:
    """The entries up to ``last``, from the first checkpoint whose log of this source is whole; None where none is."""
    for folder in checkpoints:
        if folder == start.folder and missing_entries(start, index, last):
            continue
        newest, entries = file_log_entries(folder, index)
        if last not in entries and newest < last:
            continue
        try:
            seen = files_seen(folder, index, up_to=last)
        except CheckpointUnreadable:
            continue
        return [{"path": _uri(file.path), "timestamp": file.timestamp} for file in seen]
    return None


def lines_by_age(source: StreamSource, before_ms: int) -> Lines:
    """The files of a source that were last changed before a moment (ms since 1970), as if they had been read."""
    listed = list_files(source.path or "", source.options)
    return [
        {"path": _uri(file.path), "timestamp": file.modified_ns // 1_000_000}
        for file in listed
        if file.modified_ns // 1_000_000 < before_ms
    ]


def _uri(path: str) -> str:
    name, sign, mark = path.partition("?superseded=")
    return (spark_uri(name) if is_s3(name) else Path(name).as_uri()) + sign + mark
