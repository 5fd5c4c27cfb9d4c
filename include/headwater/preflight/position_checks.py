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
    """Two entries were swapped, or an earlier one was put in place of the newest: the next batch would read rows again."""
    if len(start.planned) < 2 or any(_is_damaged(start, batch) for batch in start.planned[-2:]):
        return
    before, last = (read_offsets(start.folder, batch) for batch in start.planned[-2:])
    try:
        back = goes_back(_parsed(before), _parsed(last))
    except CheckpointUnreadable:
        return  # another form than those that are known
    if not back and not _is_copy(start, before, last):
        return
    wrong = (before, last) if back else (last,)
    positions = [start.position(entry.batch_id) for entry in wrong]
    safe = last.batch_id in start.committed and _in_order(positions if back else [before.sources, *positions])
    shown = " and ".join(str(entry.batch_id) for entry in wrong)

    def mend() -> str:
        for entry, position in zip(wrong, positions, strict=True):
            put_back(start.folder, entry.batch_id, position, start.entry_settings)
        return f"the position of batch {shown} was written back from what was recorded of it"

    yield Damage(
        OffsetsDamaged(
            f"The position of batch {last.batch_id} of {start.flow!r} is {'before ' if back else ''}that of batch {before.batch_id}: "
            "entries were swapped or replaced, and the next batch would read rows again.",
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


def _is_copy(start: FlowStart, before: BatchOffsets, last: BatchOffsets) -> bool:
    """Whether the newest entry is the one before it, and was another one when its batch ended.

    By what is recorded of it, which is looked up only here: a repair may have written two equal entries, and no batch does.
    """
    if (before.metadata, before.sources) != (last.metadata, last.sources):
        return False
    recorded = start.position(last.batch_id)
    return (
        recorded is not None
        and len(recorded) == len(last.sources)
        and any(_value(one) != _value(other) for one, other in zip(recorded, last.sources, strict=True))
    )


def _value(position: str | None) -> object:
    return None if position is None else json.loads(position)


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
    known = [[_value(text) for text in position] for position in positions if position is not None]
    return len(known) == len(positions) and not goes_back(*known)


def _is_damaged(start: FlowStart, batch: int) -> bool:
    return fault_of(start.folder / "offsets" / str(batch)) is not None


def _parsed(entry: BatchOffsets) -> list[Any]:
    return [entry.source(index) for index in range(len(entry.sources))]


def _shown(position: Positions) -> str:
    return "; ".join(map(str, position)) or "nothing"
