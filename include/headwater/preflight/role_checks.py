"""Whether the rows of a table and the flow that is to write to it come from the same kind of flow. Decision 0211."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.conditions import FlowKindChanged
from headwater.checkpoints.flow_role import FlowRole, former_flows, last_role
from headwater.checkpoints.layout import FlowState
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import remedy

_WORDS = {
    FlowRole.STREAM: "a stream",
    FlowRole.CHANGES: "a stream of change events (AUTO CDC)",
    FlowRole.ONCE: "a flow that runs once",
    FlowRole.SNAPSHOTS: "a flow of snapshots",
    FlowRole.VIEW: "a materialized view",
}
_CONSEQUENCES = {
    FlowRole.STREAM: "rows that the table has already would be written a second time, or others left out",
    FlowRole.CHANGES: "rows that the table has under the same keys would stay beside the merged ones",
    FlowRole.ONCE: "what it reads would be left out, or written a second time",
    FlowRole.SNAPSHOTS: "snapshots would be taken for applied ones, or the table's rows for deleted ones",
    FlowRole.VIEW: "refreshing it would replace all rows, also those that the sources no longer hold",
}


def role_was_changed(start: FlowStart) -> Iterator[Damage]:
    """The table has rows of a stream and is a view now, or the other way round: neither knows what the other has read."""
    if start.role is None:
        return
    before = last_role(start.checkpoint, start.state)
    if before is not None and not _same(start.state, before, start.role):
        if _has_rows(start):
            yield _damage(start, f"and {start.flow!r} was {_WORDS[before]} when it last ran", before)
        return
    # Over the rows of this flow none of another kind has run since: that takes a full refresh, which ends all of them.
    if start.state.role is not None and start.state.sink_id is not None:
        return
    for name, checkpoint, state in former_flows(start.checkpoint, start.declared):
        role = last_role(checkpoint, state)
        # Streams may come and go; a view and anything else exclude each other.
        if role is None or (role is FlowRole.VIEW) == (start.role is FlowRole.VIEW):
            continue
        if checkpoint.has_written():
            yield _damage(start, f"and {start.place} was filled by {name!r}, {_WORDS[role]}", role)
            return


def _same(state: FlowState, before: FlowRole, now: FlowRole) -> bool:
    # Earlier versions did not write roles down, and streams of change events have the checkpoints of streams.
    return before is now or (state.role is None and {before, now} == {FlowRole.STREAM, FlowRole.CHANGES})


def _has_rows(start: FlowStart) -> bool:
    is_there = start.table is not None and start.sink_id is not None
    return is_there or start.checkpoint.has_written()


def _damage(start: FlowStart, and_before: str, before: FlowRole) -> Damage:
    assert start.role is not None
    refill = f"fill the table again from what its sources hold now: headwater run PIPELINE_DIR --full-refresh {start.dataset}"
    return Damage(
        FlowKindChanged(
            f"{start.flow!r} is {_WORDS[start.role]} now, {and_before}: {_CONSEQUENCES[start.role]}.",
            where=start.checkpoint.folder,
            remedy=remedy(start)
            if start.is_sink
            else f"Change the definition back; or give it another name; or {refill}",
        ),
        (f"last run as: {before}", f"declared now: {start.role}"),
        (Repair.FULL_REFRESH,),
    )
