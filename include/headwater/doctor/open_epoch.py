"""Opening an epoch: the folder whole and durable first, then one file that makes it the live one.

Decision 0091, decision 0192.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.log_entries import SHUFFLE_PARTITIONS
from headwater.checkpoints.whole_folders import clear_unfinished, make_folder
from headwater.doctor.file_log_lines import Lines
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.repair_plan import Check
from headwater.doctor.synthetic_checkpoint import SEEDED_BATCHES, new_query_id, seed
from headwater.preflight.flow_start import Positions
from headwater.runtime.submit import default_partitions
from headwater.storage.place import Place


def lay_down(
    case: FlowCase, fill: Callable[[Place], None], state: FlowState, identity: str | None, check: Check
) -> int:
    """Create a new epoch's folder, then make it the live one; a crash between the two leaves the old one live.

    Args:
        case: the flow.
        fill: writes Spark's checkpoint.
        state: what the flow's state becomes.
        identity: the query's id there.
        check: raises LeaseLost where another process may write.

    Returns:
        The epoch.

    Raises:
        LeaseLost: the old epoch is still live, or the one that the other process opened.
    """
    epoch = case.unused_epoch()
    checkpoint = case.start.checkpoint
    seen = checkpoint.seen_state()
    make_folder(checkpoint.epoch_folder(epoch), fill)
    sink = case.start.sink_id
    check()
    checkpoint.replace_state(
        replace(state, epoch=epoch, query_id=identity, sink_id=sink, completed=False), seen
    )
    # Last, so that a number is never used for two epochs.
    clear_unfinished(checkpoint.folder)
    return epoch


def open_at(case: FlowCase, position: Positions, files: Mapping[int, Lines], check: Check) -> str:
    """Open an epoch that stands at a position and has written nothing."""
    identity = new_query_id()
    conf = case.project.spec.spark
    partitions = conf.get(SHUFFLE_PARTITIONS) or default_partitions(conf.get("spark.master", ""))
    like = case.start.folder if case.start.folder.is_dir() else None
    before = case.start.state
    state = replace(
        before.opened(0),
        source_schemas=before.source_schemas,
        versions=before.versions,
        first_batch=SEEDED_BATCHES,
    )
    epoch = lay_down(
        case, lambda folder: seed(folder, identity, position, files, like, partitions), state, identity, check
    )
    return f"epoch {epoch} is live, at {'; '.join(text or '-' for text in position)}"


def open_empty(case: FlowCase, check: Check) -> str:
    """Open an epoch that begins where its sources do; the folder is made by its first start."""
    epoch = case.unused_epoch()
    checkpoint = case.start.checkpoint
    seen = checkpoint.seen_state()
    check()
    checkpoint.replace_state(case.start.state.opened(epoch), seen)
    return f"epoch {epoch} is live, at the beginning of its sources"
