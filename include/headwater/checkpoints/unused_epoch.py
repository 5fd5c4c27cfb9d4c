"""Which epoch a flow may open next."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.delta_log.table_history import epochs_written
from headwater.storage.place import Place


def unused_epoch(
    checkpoint: FlowCheckpoint,
    flow: str,
    identity: FlowIdentity,
    table: Place | None,
    recorded: Iterable[tuple[str, int]],
) -> int:
    """An epoch that the flow never had: under an id that is used twice, Delta skips batches that it takes for repeated ones.

    Considered are folders, the live epoch, one that a reset is about to open, and those in the table's log and the event log:
    one of them is enough where the others are lost.

    Args:
        flow: the flow's name in the event log.
        identity: the names in the flow's commits; a renamed flow has its former ones there.
        table: where its rows go, None for a sink that keeps no record of who wrote to it.
        recorded: the flows and epochs of which the event log has a batch.

    Raises:
        FlowStateDamaged: it is not known which epoch is live.
    """
    state = checkpoint.read_state()
    used = [
        *checkpoint.epochs_begun(),
        *([state.epoch] if state is not None else []),
        *([state.pending_epoch] if state is not None and state.pending_epoch is not None else []),
        *(epochs_written(table, *identity.names) if table is not None else []),
        *(epoch for name, epoch in recorded if name in (flow, identity.flow)),
    ]
    return max(used, default=-1) + 1
