"""Before a flow starts: what Spark would stay silent about, and would lose or double rows over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.table_history import epochs_written
from headwater.errors import CheckpointMismatch


@dataclass(frozen=True)
class FlowStart:
    """What a check looks at.

    ``sink_id``: what the rows go to, as it is now: the Delta id of the table, None where there is none; of a sink
    without a table, its name. ``table``: the table's folder, where there is one.

    ``state``: as it lies on disk; a new one where there is none.
    """

    pipeline_id: str
    flow: str
    dataset: str
    checkpoint: FlowCheckpoint
    state: FlowState
    table: Path | None
    sink_id: str | None
    is_sink: bool = False

    @property
    def remedy(self) -> str:
        """What makes position and rows agree again in any case."""
        if self.is_sink:
            return (
                f"Send everything again: --reset-checkpoint {self.flow}. To go on from here with another place, "
                "put back the old one first, or give the flow another name."
            )
        return f"Fill the table anew from its sources: --full-refresh {self.dataset}"

    @property
    def place(self) -> str:
        """What the rows go to, for messages."""
        return (
            f"what the sink {self.dataset!r} writes to" if self.is_sink else f"the table of {self.dataset!r}"
        )


Check = Callable[[FlowStart], None]


def table_was_dropped(start: FlowStart) -> None:
    """The checkpoint says that rows were written, and the table is not there: they would never come back."""
    # A driver that was killed in its first update may have committed batches and not told to which table.
    if start.sink_id is None and start.checkpoint.has_written():
        raise CheckpointMismatch(
            f"{_capital(start.place)} is gone, and the checkpoint of {start.flow!r} is not: "
            "rows that were read before would be missing for good.",
            where=start.table,
            remedy=start.remedy,
        )


def table_was_recreated(start: FlowStart) -> None:
    """The table is another one than the checkpoint wrote to."""
    if start.state.sink_id is not None and start.sink_id is not None and start.state.sink_id != start.sink_id:
        raise CheckpointMismatch(
            f"{_capital(start.place)} is not the one that {start.flow!r} last wrote to (it was created anew, or is "
            "another one): rows that were read before would be missing for good.",
            where=start.table or start.sink_id,
            remedy=start.remedy,
        )


def checkpoint_was_lost(start: FlowStart) -> None:
    """The flow has written to this table, and its checkpoint is empty: everything would be appended again."""
    folder = start.checkpoint.epoch_folder(start.state.epoch)
    kept = (folder / "metadata").exists()
    if kept and start.checkpoint.state_file.exists():
        return
    # Where the flow's state is gone as well, the table's log still tells who wrote to it.
    written = epochs_written(start.table, start.pipeline_id, start.flow) if start.table is not None else []
    first_not_kept = start.state.epoch + int(kept)
    if (start.state.sink_id is not None and not kept) or any(epoch >= first_not_kept for epoch in written):
        raise CheckpointMismatch(
            f"The checkpoint of {start.flow!r} is gone, and {start.place} has its rows: "
            "all of them would be written a second time.",
            where=folder,
            remedy=start.remedy,
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# Later checks join here; each raises a RefusedForSafety that names what it found.
CHECKS: tuple[Check, ...] = (table_was_dropped, table_was_recreated, checkpoint_was_lost)
# A flow that runs once has no checkpoint of Spark's.
CHECKS_OF_ONCE_FLOWS: tuple[Check, ...] = (table_was_dropped, table_was_recreated)


def check_start(start: FlowStart, checks: Sequence[Check] = CHECKS) -> None:
    """Run every check; raises CheckpointMismatch for the first that does not pass."""
    for check in checks:
        check(start)
