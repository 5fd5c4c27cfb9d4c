"""How a flow writes its table: what its state says of its last run, and which flows of a table are no longer declared.

Decision 0211.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.errors import CheckpointUnreadable
from headwater.storage.walking import files_and_folders


class FlowRole(StrEnum):
    """A flow's role, as its state keeps it. Positions of one mean nothing to another."""

    STREAM = "stream"
    # AUTO CDC.
    CHANGES = "changes"
    ONCE = "once"
    SNAPSHOTS = "snapshots"
    # The query of a materialized view.
    VIEW = "view"


def flow_role(*, view: bool, snapshots: bool, once: bool, changes: bool) -> FlowRole:
    """As what a flow runs: ``view``: its query is that of a materialized view; ``changes``: its rows are change events."""
    if view:
        return FlowRole.VIEW
    if snapshots:
        return FlowRole.SNAPSHOTS
    if once:
        return FlowRole.ONCE
    return FlowRole.CHANGES if changes else FlowRole.STREAM


def last_role(checkpoint: FlowCheckpoint, state: FlowState) -> FlowRole | None:
    """The role in which a flow last ran; None where it never ran, or an earlier version did not write it down.

    Args:
        state: the flow's; one that a reset has opened has no role yet.
    """
    if state.role is not None:
        return FlowRole(state.role) if state.role in list(FlowRole) else None
    if state.refresh:
        return FlowRole.VIEW
    is_stream = state.query_id is not None or (checkpoint.epoch_folder(state.epoch) / "metadata").exists()
    return FlowRole.STREAM if is_stream else None


def former_flows(
    checkpoint: FlowCheckpoint, declared: Collection[str]
) -> Iterator[tuple[str, FlowCheckpoint, FlowState]]:
    """The flows that once filled the table of a flow and are no longer declared, with what is left of them.

    Args:
        checkpoint: of any flow of the table.
        declared: the names of the flows that the table has now.
    """
    table = checkpoint.folder.parent
    try:
        names = files_and_folders(table)[1]
    except FileNotFoundError:  # the table's first update
        return
    for name in sorted(set(names) - set(declared)):
        other = FlowCheckpoint(table / name)
        try:
            state = other.surviving_state()
        except CheckpointUnreadable:
            continue  # its own start, should it ever come back, is refused
        if state is not None:
            yield name, other, state
