"""What the newest entry of a file source's log names, kept outside the log: an entry of another flow has the same number and form.

Decision 0243.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.checkpoints.offsets import SeenFile, committed_offsets, read_file_log_entry
from headwater.errors import CheckpointUnreadable
from headwater.storage.place import Place


def newest_files(checkpoint: Place, before: Mapping[str, Any]) -> dict[str, list[Any]]:
    """For each file source, by its number, the newest entry of its log that is done and a file that it names.

    Nothing of an entry that is compacted: which files it had is not told from those of the entries before.

    Args:
        checkpoint: an epoch's folder.
        before: the answer of the last run; an entry that is still the newest is not read again.
    """
    offsets = committed_offsets(checkpoint)
    newest: dict[str, list[Any]] = {}
    for index in range(len(offsets.sources) if offsets is not None else 0):
        position = offsets.source(index) if offsets is not None else None
        if not isinstance(position, dict) or "logOffset" not in position:
            continue
        number, source = int(position["logOffset"]), str(index)
        known = before.get(source)
        named = [known[1]] if known and known[0] == number else _named(checkpoint, source, number)
        if named:
            newest[source] = [number, named[0]]
    return newest


def is_anothers(entry: Place, named: list[SeenFile], recorded: Any) -> bool:
    """Whether an entry has the number that was recorded (as ``newest_files`` gives it), and lacks the file that it named then."""
    return (
        bool(recorded) and int(entry.name) == recorded[0] and recorded[1] not in {one.path for one in named}
    )


def _named(checkpoint: Place, source: str, number: int) -> list[str]:
    try:
        return [one.path for one in read_file_log_entry(checkpoint / "sources" / source / str(number))]
    except CheckpointUnreadable:
        return []
