"""What AUTO CDC remembers beside a table against what the flow's state says of it: nothing else would miss it.

Decision 0240.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.conditions import ChangeMemoryLost
from headwater.checkpoints.layout import FlowCheckpoint, remembered_changes
from headwater.delta_log.table_history import deletes_kept_since, head_version
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import commits_behind_the_state, damage_in_log, holes_in_log
from headwater.preflight.table_file_checks import MOST_NAMED, first_of, missing_files
from headwater.storage.place import Place


def change_memory_was_lost(start: FlowStart) -> Iterator[Damage]:
    """Without its tombstones and sequences an older event that comes late would win: a deleted row would be there again."""
    recorded, memory = start.state.change_memory, _memory(start)
    if recorded is None:
        unsaid = commits_behind_the_state(start)
        if unsaid is None or head_version(memory) >= 0 or not deletes_kept_since(*unsaid):
            return
    now = head_version(memory)
    if recorded is not None and now >= recorded:
        return

    def mend() -> str:
        _give_up(start)
        return f"what was remembered for {start.dataset!r} is given up: events older than those before now may count again"

    lost = "is gone" if now < 0 else f"ends at version {now}, and the last run had left it at {recorded}"
    yield Damage(
        ChangeMemoryLost(
            f"What AUTO CDC remembers for {start.dataset!r} {lost}: deletes and the order of events that came before would be "
            "unknown, and an older event that comes late would count.",
            where=memory,
            remedy="Put it back from a backup; or refill the table: "
            f"headwater run PIPELINE_DIR --full-refresh {start.dataset}; or, if no older event can come any more: {start.command('mend')}",
        ),
        (
            f"version after the last run: {'not recorded' if recorded is None else recorded}",
            f"version now: {now if now >= 0 else 'none'}",
        ),
        (Repair.FULL_REFRESH, Repair.MEND),
        mend,
        unasked=False,
    )


def change_memory_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """As of the table itself: a hole in the log, and a commit that is empty, cut or copied."""
    if start.state.change_memory is None:
        return
    memory, named = _memory(start), f"what AUTO CDC remembers for {start.dataset!r}"
    holes = list(holes_in_log(memory, named))
    yield from holes or damage_in_log(
        memory,
        named,
        "Deletes that it kept may be missing.",
        f"headwater run PIPELINE_DIR then says whether anything is missing; if so, --full-refresh {start.dataset} makes it good.",
    )


def change_memory_files_are_gone(start: FlowStart) -> Iterator[Damage]:
    """As of the table itself: a batch whose keys lie in other files would not miss them."""
    if start.state.change_memory is None or head_version(_memory(start)) < 0:
        return
    memory = _memory(start)
    missing = missing_files(memory, deep=start.deep)
    if missing:
        yield Damage(
            ChangeMemoryLost(
                f"Files of what AUTO CDC remembers for {start.dataset!r} are gone or cut: {first_of(missing)}. Deletes and the order of "
                "events that came before would be unknown.",
                where=memory,
                remedy="Restore them from a backup. If there is none, refill the table: "
                f"headwater run PIPELINE_DIR --full-refresh {start.dataset}; or, if no older event can come any more, move this folder away, "
                f"and then: {start.command('mend')}",
            ),
            tuple(missing[:MOST_NAMED]),
            (Repair.FULL_REFRESH,),
        )


def _memory(start: FlowStart) -> Place:
    return remembered_changes(start.checkpoint.folder.parents[2], start.dataset)


def _give_up(start: FlowStart) -> None:
    """Have all flows of the table do without: they remember in one place."""
    head = head_version(start.table) if start.table is not None else None
    for flow in {start.flow, *start.declared}:
        checkpoint = FlowCheckpoint(start.checkpoint.folder.parent / flow)
        if checkpoint.read_state() is not None:
            # Commits up to now may say what was remembered.
            checkpoint.update_state(change_memory=None, sink_version=head)
