"""The checkpoints of a pipeline in storage, whether its definition still has the flows or not."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import BatchOffsets, committed_at, committed_offsets
from headwater.errors import CheckpointUnreadable
from headwater.storage.place import Place
from headwater.storage.walking import files_below

_SHOWN = 160


@dataclass(frozen=True)
class CheckpointEntry:
    """One epoch of a flow. ``age``: seconds since its last committed batch; ``size``: bytes on disk.

    ``offsets``: each source's position, shortened. ``problem``: why it can't be read, where it can't.
    """

    dataset: str
    flow: str
    epoch: int
    live: bool
    last_batch: int | None
    age: float | None
    offsets: tuple[str, ...]
    size: int
    folder: str
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry as JSON values."""
        return asdict(self)


def list_checkpoints(state_folder: Place) -> list[CheckpointEntry]:
    """Every epoch of every flow below a pipeline's folder in storage, by dataset, flow and epoch."""
    root = state_folder / "checkpoints"
    flows = sorted(path for path in root.glob("*/*") if path.is_dir()) if root.is_dir() else []
    checkpoints: list[CheckpointEntry] = []
    for path in flows:
        checkpoint = FlowCheckpoint(path)
        try:
            live = checkpoint.live_folder().name
        except (CheckpointUnreadable, StorageNotReadable):
            live = ""  # it is not known which epoch is live; the epochs are shown all the same
        # A reset names its epoch before anything lies in it.
        there = checkpoint.epochs()
        epochs = sorted({*there, *([int(live)] if there and live else [])})
        checkpoints.extend(_entry(checkpoint, epoch, live=str(epoch) == live) for epoch in epochs)
    return checkpoints


def _entry(checkpoint: FlowCheckpoint, epoch: int, *, live: bool) -> CheckpointEntry:
    folder = checkpoint.epoch_folder(epoch)
    offsets: BatchOffsets | None = None
    problem = None
    try:
        offsets = committed_offsets(folder)
    except (CheckpointUnreadable, StorageNotReadable) as error:
        problem = f"{error.what} ({error.where})"
    age = None
    if offsets is not None and (committed := committed_at(folder, offsets.batch_id)) is not None:
        age = max(0.0, time.time() - committed)
    return CheckpointEntry(
        dataset=checkpoint.folder.parent.name,
        flow=checkpoint.folder.name,
        epoch=epoch,
        live=live,
        last_batch=offsets.batch_id if offsets else None,
        age=age,
        offsets=tuple(position_summary(text) for text in offsets.sources) if offsets else (),
        size=_size(folder),
        folder=str(folder),
        problem=problem,
    )


def position_summary(text: str | None) -> str:
    """A Delta offset as its version, others as they are, shortened."""
    if text is None:
        return "-"
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return "damaged"
    if isinstance(value, dict) and "reservoirVersion" in value:
        index = value.get("index", -1)
        return f"version {value['reservoirVersion']}" + (f", file {index}" if index >= 0 else "")
    if isinstance(value, dict) and set(value) == {"logOffset"}:
        return f"files up to {value['logOffset']}"
    shown = json.dumps(value, separators=(",", ":"))
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def _size(folder: Place) -> int:
    return sum(state.st_size for _, state in files_below(folder))
