"""The log of a file source: Spark identifies files by path alone, so an overwritten one must be removed from it first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headwater.checkpoints.offsets import committed_offsets, entry_path, files_seen
from headwater.files.atomic_files import write_atomically
from headwater.files.json_lines import read_lines
from headwater.storage.place import Place
from headwater.storage.walking import in_order

# Behind the path of an entry that was superseded; no file's URI holds a question mark.
SUPERSEDED_MARK = "?superseded="


def forget_overwritten(checkpoint: Place, modified: Mapping[str, int]) -> list[str]:
    """Remove files that were overwritten since they were read from Spark's log, so that it reads them again.

    Only entries of committed batches are touched, and only while no query runs on the checkpoint.

    Args:
        checkpoint: the live epoch's folder.
        modified: each file's modification time now, in ms since 1970, by path.

    Returns:
        The paths that will be read again.
    """
    offsets = committed_offsets(checkpoint)
    if offsets is None:
        return []
    forgotten: list[str] = []
    for index in range(len(offsets.sources)):
        offset = offsets.source(index)
        if not isinstance(offset, dict) or "logOffset" not in offset:
            continue
        last = int(offset["logOffset"])
        old = {
            file.path: file.timestamp
            for file in files_seen(checkpoint, index, up_to=last)
            if modified.get(file.path, 0) > file.timestamp
        }
        if old:
            _rewrite(checkpoint / "sources" / str(index), old, last)
            forgotten += old
    return forgotten


def _rewrite(folder: Place, old: Mapping[str, int], last: int) -> None:
    for file in in_order(folder.iterdir()):
        if file.name.startswith(".") or not file.name.removesuffix(".compact").isdigit():
            continue
        head, *lines = read_lines(file)
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        changed = False
        for entry in entries:
            if entry_path(entry) in old and int(entry["batchId"]) <= last:
                entry["path"] = f"{entry['path']}{SUPERSEDED_MARK}{entry['timestamp']}"
                changed = True
        if changed:
            # The checksum of the old content would make Spark refuse the new one.
            (folder / f".{file.name}.crc").unlink(missing_ok=True)
            write_atomically(file, "\n".join([head, *map(json.dumps, entries)]))
