"""A copy of a checkpoint from which Spark runs one batch again, exactly as it was planned; the original stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from headwater.checkpoints.offsets import BatchOffsets, SeenFile, files_seen, numbered, read_offsets
from headwater.errors import CheckpointUnreadable
from headwater.storage.place import Place, local_only


def lay_out_batch(checkpoint: Place, batch_id: int, target: Place) -> None:
    """Fill ``target`` with a checkpoint whose next start runs ``batch_id``: planned, and not marked as done.

    The copy belongs to a query of its own, under a new id. Files of state are linked, not copied.

    Args:
        checkpoint: an epoch's folder.
        batch_id: the batch to run again; its plan must still be in the offset log.
        target: a folder on the same file system; what is in it is replaced.

    Raises:
        CheckpointUnreadable: where the plan of the batch, or of the one before it, is no longer there.
    """
    planned = numbered(checkpoint / "offsets")
    missing = [number for number in (batch_id - 1, batch_id) if number >= 0 and number not in planned]
    if missing:
        raise CheckpointUnreadable(
            f"The offset log has no batch {missing[0]} any more.",
            where=checkpoint / "offsets",
            remedy="What the batch read can't be looked up; the batches after it are not affected.",
        )
    checkpoint, target = (local_only(folder, "Counting a batch again") for folder in (checkpoint, target))
    if target.exists():
        shutil.rmtree(target)
    _copy_numbered(checkpoint / "offsets", target / "offsets", batch_id)
    _copy_numbered(checkpoint / "commits", target / "commits", batch_id - 1)
    (target / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}), encoding="utf-8")
    _copy_tree(checkpoint / "sources", target / "sources", shutil.copy2)
    # Each file of state is written once and renamed into place: a link can't change the original.
    _copy_tree(checkpoint / "state", target / "state", os.link)


def changed_files(checkpoint: Place, batch_id: int) -> list[str]:
    """The files that a batch read and that are gone, or were written again since: Spark passes over what is gone.

    Raises:
        CheckpointUnreadable: where the checkpoint does not say what the batch read.
    """
    ends = read_offsets(checkpoint, batch_id)
    starts = read_offsets(checkpoint, batch_id - 1) if batch_id > 0 else None
    changed: list[str] = []
    for index in range(len(ends.sources)):
        first, last = _log_offset(starts, index), _log_offset(ends, index)
        files = files_seen(checkpoint, index, up_to=last) if last >= 0 else []
        changed += [file.path for file in files if file.batch_id > first and _has_changed(file)]
    return changed


def _log_offset(offsets: BatchOffsets | None, source: int) -> int:
    """How far a file source had got in its own log, -1 for another kind of source, or one that had not begun."""
    offset = offsets.source(source) if offsets is not None else None
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else -1


def _has_changed(file: SeenFile) -> bool:
    # What follows a question mark is not part of the name (file_source_log).
    path = Path(file.path.partition("?")[0])
    try:
        return path.stat().st_mtime_ns // 1_000_000 != file.timestamp
    except OSError:
        return True


def _copy_numbered(source: Path, target: Path, last: int) -> None:
    target.mkdir(parents=True)
    for number in numbered(source):
        if number <= last:
            shutil.copy2(source / str(number), target / str(number))


def _copy_tree(source: Path, target: Path, copy: Callable[[Path, Path], object]) -> None:
    for folder, _, names in os.walk(source):
        into = target / Path(folder).relative_to(source)
        into.mkdir(parents=True, exist_ok=True)
        # Checksums and files being written begin with a dot; Spark does without them.
        for name in names:
            if not name.startswith("."):
                copy(Path(folder) / name, into / name)
