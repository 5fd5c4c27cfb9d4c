"""How many rows are written again when a flow goes back; those of earlier epochs count, too, since the table has them."""

from __future__ import annotations

from headwater.checkpoints.offsets import read_offsets
from headwater.delta_log.table_history import table_exists
from headwater.delta_log.versions import rows_of_table
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.known_positions import rows_by_batch
from headwater.doctor.repair_plan import NOTHING
from headwater.errors import CheckpointUnreadable
from headwater.preflight.flow_start import Positions

REPLACED = "no rows: repeated rows replace those that are there"


def rows_after(case: FlowCase, batch: int) -> str:
    """How many rows that the table has are read again after a batch of the live epoch, in words."""
    if case.written is None and case.table is None:
        return "can't be known: the sink does not record which batches it has"
    last = last_in_table(case)
    later = [number for number in range(batch + 1, last + 1) if not _stands_still(case, number)]
    if not later:
        return NOTHING
    if case.by_key:
        return REPLACED
    rows = {number: _rows_of(case, number) for number in later}
    unknown = [number for number in later if rows[number] is None]
    count = sum(written or 0 for written in rows.values())
    span = f"batch {later[0]}" if len(later) == 1 else f"batches {later[0]} to {later[-1]}"
    # An earlier epoch may have gone further in the sources than the live one has come since.
    least = "at least " if unknown or _ahead(case) > last else ""
    return f"{least}{count} rows ({span})" + (f"; of batches {unknown} it can't be known" if unknown else "")


def rows_in_all(case: FlowCase) -> str:
    """How many rows the flow may have written, in any epoch, in words: a start from the beginning repeats them."""
    shown = "as far as the sources still hold them"
    if case.table is None:
        sent = sum(sum(_rows_of_epoch(case, epoch).values()) for epoch in range(case.epoch + 1))
        return f"at least {sent} rows: all that the event log knows to have been sent, {shown}"
    if not table_exists(case.table):
        return NOTHING
    count = rows_of_table(case.table)
    if count is None:
        return f"up to all rows that the table has, {shown}; how many can't be known"
    return f"up to {count} rows: all that the table has, {shown}" if count else NOTHING


def last_in_table(case: FlowCase) -> int:
    """The last batch that the table has, as the live epoch counts them: its own, or those of what it was copied from; -1 for none."""
    reached = case.reached if case.reached is not None else -1
    return max(reached, _ahead(case)) if case.written is None else reached


def _ahead(case: FlowCase) -> int:
    return max((_written_in(case, epoch) for epoch in chain(case)), default=-1)


def chain(case: FlowCase) -> list[int]:
    """The epochs that the live one was copied from, newest first: their batches have the same numbers."""
    first = case.start.state.first_batch
    own = _ends(case, case.epoch, first - 1) if first else None
    if own is None:
        return []
    return [epoch for epoch in range(case.epoch - 1, -1, -1) if _ends(case, epoch, first - 1) == own]


def _ends(case: FlowCase, epoch: int, batch: int) -> Positions | None:
    try:
        return read_offsets(case.start.checkpoint.epoch_folder(epoch), batch).sources
    except CheckpointUnreadable:
        return None


def _written_in(case: FlowCase, epoch: int) -> int:
    """The last batch of an epoch that the table has, -1 for none."""
    batches = (c.transaction[1] for c in case.commits if c.epoch == epoch and c.transaction is not None)
    return max(batches, default=-1)


def _stands_still(case: FlowCase, batch: int) -> bool:
    """Whether a batch that was created with the live epoch ends where the one before it does: it gives no row."""
    if not 0 < batch < case.start.state.first_batch:
        return False
    ends = _ends(case, case.epoch, batch)
    return ends is not None and ends == _ends(case, case.epoch, batch - 1)


def _rows_of(case: FlowCase, batch: int) -> int | None:
    """What a batch wrote; of one that the live epoch has not written, what it gave in an earlier one."""
    if batch in case.rows:
        return case.rows[batch]
    if case.written is not None and case.start.state.first_batch <= batch <= case.written:
        return None
    earlier = (_rows_of_epoch(case, epoch) for epoch in range(case.epoch - 1, -1, -1))
    return next((rows[batch] for rows in earlier if batch in rows), None)


def _rows_of_epoch(case: FlowCase, epoch: int) -> dict[int, int]:
    return rows_by_batch(case.project.state_folder, case.identity, case.flow.name, case.table, epoch)
