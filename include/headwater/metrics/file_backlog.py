"""What a stream from files has not read yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headwater.checkpoints.offsets import SeenFile, files_seen
from headwater.definitions.intervals import read_duration
from headwater.errors import SourceUnreachable
from headwater.metrics.backlog import Backlog
from headwater.metrics.file_listing import list_files
from headwater.storage.access import ObjectStore
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.place import Place, is_s3


def file_backlog(
    path: str,
    options: Mapping[str, str],
    checkpoint: Place | None,
    source_index: int,
    offset: Mapping[str, Any] | None,
    *,
    store: ObjectStore | None = None,
) -> Backlog:
    """The files at ``path`` that the checkpoint has not taken in (all of them if ``offset`` is None). ``store``: how S3 is reached."""
    seen: list[SeenFile] = []
    try:
        present = list_files(path, options, store=store)
    except STORE_ERRORS as error:
        return Backlog.because(f"{error.what} ({path})")
    except SourceUnreachable as error:
        # Without files below it a prefix of S3 is not there; it was right if files were read below it.
        if offset is None or not is_s3(path):
            return Backlog.because(error.what)
        present = []
    if offset is not None and checkpoint is not None:
        seen = files_seen(checkpoint, source_index, up_to=int(offset["logOffset"]))
    seen_times = {file.path: file.timestamp for file in seen}
    again = options.get("allowOverwrites") == "true"
    # Spark forgets, and then passes over, files that are so much older than the newest it has read.
    age = read_duration(options.get("maxFileAge", ""))
    oldest_ms = 0.0
    if seen and age is not None:
        oldest_ms = max(file.timestamp for file in seen) - age.total_seconds() * 1000
    new = [
        f
        for f in present
        if (f.path not in seen_times and f.modified_ns // 1_000_000 >= oldest_ms)
        or (again and f.path in seen_times and f.modified_ns // 1_000_000 > seen_times[f.path])
    ]
    waited = max(0.0, time.time() - min(f.modified_ns for f in new) / 1e9) if new else 0.0
    # How many rows a file holds is not known before it is read; no file holds none.
    records = None if new else 0
    return Backlog(
        records=records, bytes=sum(f.size for f in new), files=len(new), seconds=waited, moved=bool(new)
    )
