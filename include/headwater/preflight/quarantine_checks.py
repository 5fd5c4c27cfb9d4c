"""The quarantine against what the flow's state says of it: nothing else would miss rows that rules kept out.

Decision 0237, decision 0241.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.conditions import QuarantineGone, TableFilesGone
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.delta_log.table_history import head_version, kept_out_since
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import commits_behind_the_state, damage_in_log, holes_in_log
from headwater.preflight.table_file_checks import MOST_NAMED, first_of, missing_files


def quarantine_was_lost(start: FlowStart) -> Iterator[Damage]:
    """The rows in it were read before, and would be missing for good; the next one to be kept out would make a new table."""
    if start.quarantine is None:
        return
    recorded = start.state.quarantine_version
    unsaid = None if start.state.has_quarantine else commits_behind_the_state(start)
    if not start.state.has_quarantine and unsaid is None:
        return
    now = head_version(start.quarantine)
    if now >= (recorded or 0) or (unsaid is not None and not kept_out_since(*unsaid)):
        return

    def mend() -> str:
        _give_up(start)
        return f"what is missing from the quarantine of {start.dataset!r} is given up"

    lost = "is gone" if now < 0 else f"ends at version {now}, and the last run had left it at {recorded}"
    yield Damage(
        QuarantineGone(
            f"The quarantine of {start.dataset!r} {lost}: rows that its rules kept out, and that were read before, would be missing for good.",
            where=start.quarantine,
            remedy="Put it back from a backup; or refill it with its table: "
            f"headwater run PIPELINE_DIR --full-refresh {start.dataset}; or, if nobody needs the rows: {start.command('mend')}",
        ),
        (
            f"version after the last run: {'not recorded' if recorded is None else recorded}",
            f"version now: {now if now >= 0 else 'none'}",
        ),
        (Repair.FULL_REFRESH, Repair.MEND),
        mend,
        unasked=False,
    )


def _give_up(start: FlowStart) -> None:
    """Have all flows of the table do without: it is one quarantine, and each of them would miss it."""
    head = head_version(start.table) if start.table is not None else None
    for flow in {start.flow, *start.declared}:
        checkpoint = FlowCheckpoint(start.checkpoint.folder.parent / flow)
        if checkpoint.read_state() is not None:
            checkpoint.update_state(has_quarantine=False, quarantine_version=None, sink_version=head)


def quarantine_log_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """As of the table itself: a commit that is empty, cut or copied, and a hole between two."""
    if start.quarantine is None or not start.state.has_quarantine:
        return
    named = f"the quarantine of {start.dataset!r}"
    holes = list(holes_in_log(start.quarantine, named))
    yield from holes or damage_in_log(
        start.quarantine,
        named,
        "Rows that it kept may be missing.",
        f"its rows are then gone from the quarantine until a full refresh of {start.dataset} reads them again.",
    )


def quarantine_files_are_gone(start: FlowStart) -> Iterator[Damage]:
    """As of the table itself: batches are appended beside files that are gone, and only who replays them would notice."""
    if start.quarantine is None or not start.state.has_quarantine or head_version(start.quarantine) < 0:
        return
    missing = missing_files(start.quarantine, deep=start.deep)
    if missing:
        yield Damage(
            TableFilesGone(
                f"Files of the quarantine of {start.dataset!r} are gone or cut: {first_of(missing)}. Rows that its rules kept out, and "
                "that were read before, would be missing for good.",
                where=start.quarantine,
                remedy="Restore them from a backup. If there is none, refill it with its table: "
                f"headwater run PIPELINE_DIR --full-refresh {start.dataset}; or, if nobody needs the rows that are left, move the folder of "
                f"the quarantine away, and then: {start.command('mend')}",
            ),
            tuple(missing[:MOST_NAMED]),
            (Repair.FULL_REFRESH,),
        )
