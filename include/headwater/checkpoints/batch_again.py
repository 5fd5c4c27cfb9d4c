"""A copy of a checkpoint from which Spark runs one batch again, exactly as it was planned; the original stays as it is.

Decision 0191.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from headwater.checkpoints.offsets import BatchOffsets, SeenFile, files_seen, numbered, read_offsets
from headwater.errors import CheckpointUnreadable
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, of_spark, parts_below
from headwater.storage.walking import copy_files, remove_tree


def lay_out_batch(checkpoint: Place, batch_id: int, target: Place) -> None:
    """Fill ``target`` with a checkpoint whose next start runs ``batch_id``: planned, and not marked as done.

    The copy belongs to a query of its own, under a new id. Files of state are linked on a disk; a store copies them by itself.

    Args:
        checkpoint: an epoch's folder.
        batch_id: the batch to run again; its plan must still be in the offset log.
        target: a folder on the same file system, or of the same bucket; what is in it is replaced.

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
    if isinstance(checkpoint, ObjectPath) and isinstance(target, ObjectPath):
        _lay_out_objects(checkpoint, batch_id, target)
    elif isinstance(checkpoint, Path) and isinstance(target, Path):
        _lay_out_files(checkpoint, batch_id, target)
    else:
        raise TypeError(f"{checkpoint} and {target} are not in one storage")


def _lay_out_files(checkpoint: Path, batch_id: int, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    _copy_numbered(checkpoint / "offsets", target / "offsets", batch_id)
    _copy_numbered(checkpoint / "commits", target / "commits", batch_id - 1)
    (target / "metadata").write_text(_new_identity(), encoding="utf-8")
    _copy_tree(checkpoint / "sources", target / "sources", shutil.copy2)
    # Each file of state is written once and renamed into place: a link can't change the original.
    _copy_tree(checkpoint / "state", target / "state", os.link)


def _lay_out_objects(checkpoint: ObjectPath, batch_id: int, target: ObjectPath) -> None:
    last = {"offsets": batch_id, "commits": batch_id - 1}

    def belongs(file: Place) -> bool:
        folder = parts_below(file, checkpoint)[0]
        if folder in last:
            return file.name.isdigit() and int(file.name) <= last[folder]
        # Hadoop marks folders by empty objects; checksums and files being written begin with a dot.
        return folder in ("sources", "state") and file.parent != checkpoint and not file.name.startswith(".")

    remove_tree(target)
    copy_files(checkpoint, target, belongs)
    (target / "metadata").write_text(_new_identity())


def _new_identity() -> str:
    return json.dumps({"id": str(uuid.uuid4())})


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
        changed += [file.path for file in files if file.batch_id > first and _has_changed(file, checkpoint)]
    return changed


def _log_offset(offsets: BatchOffsets | None, source: int) -> int:
    """How far a file source had got in its own log, -1 for another kind of source, or one that had not begun."""
    offset = offsets.source(source) if offsets is not None else None
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else -1


def _has_changed(file: SeenFile, checkpoint: Place) -> bool:
    # What follows a question mark is not part of the name (file_source_log).
    path = of_spark(checkpoint, file.path.partition("?")[0])
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
