"""Opening an epoch: the folder whole and durable first, then one file that makes it the live one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.doctor.file_log_lines import Lines
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.snapshots import make_folder
from headwater.doctor.synthetic_checkpoint import SEEDED_BATCHES, new_query_id, seed
from headwater.preflight.flow_start import Positions
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place


def lay_down(case: FlowCase, fill: Callable[[Place], None], state: FlowState, identity: str | None) -> int:
    """Create a new epoch's folder, then make it the live one; a crash before that leaves the old one live.

    On a store, where nothing is renamed, it may leave half a folder: an epoch's number is not used a second time.

    Returns:
        The epoch.
    """
    epoch = case.unused_epoch()
    checkpoint = case.start.checkpoint
    folder = checkpoint.epoch_folder(epoch)
    if isinstance(folder, ObjectPath):
        _keep_the_live_one(checkpoint, case.start.state)
        fill(folder)
    else:
        make_folder(folder, fill)
    sink = case.start.sink_id
    checkpoint.write_state(replace(state, epoch=epoch, query_id=identity, sink_id=sink, completed=False))
    return epoch


def _keep_the_live_one(checkpoint: FlowCheckpoint, state: FlowState) -> None:
    """Say which epoch is live where nothing does: else it would be the newest folder, however little of it there is."""
    if not checkpoint.state_file.exists():
        checkpoint.write_state(state)


def open_at(case: FlowCase, position: Positions, files: Mapping[int, Lines]) -> str:
    """Open an epoch that stands at a position and has written nothing."""
    identity = new_query_id()
    like = case.start.folder if case.start.folder.is_dir() else None
    before = case.start.state
    state = replace(
        before.opened(0),
        source_schemas=before.source_schemas,
        versions=before.versions,
        first_batch=SEEDED_BATCHES,
    )
    epoch = lay_down(case, lambda folder: seed(folder, identity, position, files, like), state, identity)
    return f"epoch {epoch} is live, at {'; '.join(text or '-' for text in position)}"


def open_empty(case: FlowCase) -> str:
    """Open an epoch that begins where its sources do; the folder is made by its first start."""
    epoch = case.unused_epoch()
    case.start.checkpoint.write_state(case.start.state.opened(epoch))
    return f"epoch {epoch} is live, at the beginning of its sources"
