"""Positions that Spark can read and that can't be right: the newest one stands before the one that came before it.

Decision 0201.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headwater.checkpoints.conditions import OffsetsDamaged
from headwater.checkpoints.log_entries import fault_of, put_back
from headwater.checkpoints.offsets import BatchOffsets, read_offsets
from headwater.errors import CheckpointUnreadable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, Positions


def position_went_back(start: FlowStart) -> Iterator[Damage]:
    """Two entries were swapped, or an older one was put in place of the newest: the next batch would read rows again."""
    if len(start.planned) < 2 or any(_is_damaged(start, batch) for batch in start.planned[-2:]):
        return
    before, last = (read_offsets(start.folder, batch) for batch in start.planned[-2:])
    try:
        back = goes_back(_parsed(before), _parsed(last))
    except CheckpointUnreadable:
        return  # another form than those that are known
    if not back:
        return
    positions = [start.position(entry.batch_id) for entry in (before, last)]
    safe = last.batch_id in start.committed and _in_order(positions)

    def mend() -> str:
        for entry, position in zip((before, last), positions, strict=True):
            put_back(start.folder, entry.batch_id, position, start.state.state_settings)
        return f"the positions of batches {before.batch_id} and {last.batch_id} were written back from what was recorded of them"

    yield Damage(
        OffsetsDamaged(
            f"The position of batch {last.batch_id} of {start.flow!r} is before that of batch {before.batch_id}: entries were swapped "
            "or replaced, and the next batch would read rows again.",
            where=last.file,
            remedy="The next start repairs it."
            if safe
            else start.restoring(f"rebuild the position: {start.command('rebuild')}"),
        ),
        (
            f"batch {before.batch_id}: {_shown(before.sources)}",
            f"batch {last.batch_id}: {_shown(last.sources)}",
            f"recorded of batch {last.batch_id}: {_shown(positions[-1] or ())}",
        ),
        (Repair.MEND,) if safe else (Repair.RESTORE, Repair.REBUILD, Repair.FULL_REFRESH),
        mend if safe else None,
    )


def goes_back(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether a later position of the same sources is an earlier one of any table or folder of files.

    Topics are left out: one that was deleted and made again begins at zero, which a check of its own knows.

    Args:
        before: the parsed offsets of each source, None where it was not read yet.
        after: those of the batch that follows.
    """
    return len(before) == len(after) and any(map(_is_earlier, after, before))


def _is_earlier(one: Any, other: Any) -> bool:
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return False
    if one.get("reservoirId") != other.get("reservoirId"):
        return False
    return any(
        isinstance(one.get(key), int) and isinstance(other.get(key), int) and one[key] < other[key]
        for key in ("reservoirVersion", "logOffset")
    )


def _in_order(positions: Sequence[Positions | None]) -> bool:
    """Whether all that was recorded is known, and can be right."""
    known = [
        [None if text is None else json.loads(text) for text in position]
        for position in positions
        if position is not None
    ]
    return len(known) == len(positions) and not goes_back(*known)


def _is_damaged(start: FlowStart, batch: int) -> bool:
    return fault_of(start.folder / "offsets" / str(batch)) is not None


def _parsed(entry: BatchOffsets) -> list[Any]:
    return [entry.source(index) for index in range(len(entry.sources))]


def _shown(position: Positions) -> str:
    return "; ".join(map(str, position)) or "nothing"
