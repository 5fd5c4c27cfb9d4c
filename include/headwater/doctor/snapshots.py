"""Copies of a flow's live checkpoint, kept beside the checkpoints and never changed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.offsets import last_committed_batch
from headwater.files.atomic_files import sync_folder, write_atomically
from headwater.storage.place import Place, local_only
from headwater.storage.walking import copy_file, in_order

_ABOUT = "snapshot.json"
_CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Snapshot:
    """A copy of an epoch. ``taken_at``: UTC, ISO 8601; ``last_batch``: the last that was done, None for none."""

    name: str
    dataset: str
    flow: str
    epoch: int
    last_batch: int | None
    taken_at: str
    reason: str
    folder: str

    @property
    def checkpoint(self) -> Path:
        """The copied folder of Spark's."""
        return Path(self.folder) / _CHECKPOINT

    def state(self) -> FlowState:
        """The flow's state when it was taken."""
        file = Path(self.folder) / "flow.json"
        data: dict[str, Any] = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"epoch": self.epoch}
        )
        return FlowState.of(data)

    def as_dict(self) -> dict[str, Any]:
        """The snapshot as JSON values."""
        return asdict(self)


def snapshots_of(state_folder: Place, dataset: str, flow: str) -> list[Snapshot]:
    """The snapshots of a flow, oldest first."""
    root = _root(state_folder, dataset, flow)
    files = in_order(root.glob(f"*/{_ABOUT}")) if root.is_dir() else []
    snapshots = [
        Snapshot(**json.loads(file.read_text(encoding="utf-8")), folder=str(file.parent)) for file in files
    ]
    return sorted(snapshots, key=lambda snapshot: (snapshot.taken_at, snapshot.name))


def take_snapshot(state_folder: Place, checkpoint: FlowCheckpoint, *, reason: str) -> Snapshot | None:
    """Copy a flow's live epoch and state; no update may run meanwhile.

    Returns:
        The snapshot, durable; None where there is nothing to copy.
    """
    state = checkpoint.surviving_state() or FlowState()
    source = checkpoint.epoch_folder(state.epoch)
    if not source.is_dir() and not checkpoint.state_file.exists():
        return None
    dataset, flow = checkpoint.folder.parent.name, checkpoint.folder.name
    now = datetime.now(UTC)
    last = last_committed_batch(source)
    name = f"{now:%Y%m%dT%H%M%S%fZ}-epoch{state.epoch}" + (f"-batch{last}" if last is not None else "")
    about = {
        "name": name,
        "dataset": dataset,
        "flow": flow,
        "epoch": state.epoch,
        "last_batch": last,
        "taken_at": now.isoformat(),
        "reason": reason,
    }

    def fill(folder: Place) -> None:
        if source.is_dir():
            copy_durably(source, folder / _CHECKPOINT)
        if checkpoint.state_file.exists():
            copy_file(checkpoint.state_file, folder / "flow.json")
        # Last: a copy without it is not a snapshot.
        write_atomically(folder / _ABOUT, json.dumps(about, indent=1) + "\n")

    target = make_folder(_root(state_folder, dataset, flow) / name, fill)
    return Snapshot(**about, folder=str(target))  # type: ignore[arg-type]


def make_folder(target: Place, fill: Callable[[Place], None]) -> Place:
    """Make a folder that is there whole or not at all, durable before it returns; raises NotOnAStore."""
    target = local_only(target, "A copy of a checkpoint")
    target.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        fill(making)
        sync_folder(making)
        making.chmod(0o755)
        making.rename(target)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    sync_folder(target.parent)
    return target


def copy_durably(source: Place, target: Place, keep: Callable[[Place], bool] = lambda _: True) -> None:
    """Copy a folder; files for which ``keep`` says no (given their path in ``source``) are left out."""
    source, target = (local_only(folder, "A copy of a checkpoint") for folder in (source, target))
    for parent, _, names in os.walk(source):
        into = target / Path(parent).relative_to(source)
        into.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(parent) / name
            if not keep(file):
                continue
            shutil.copy2(file, into / name)
            with (into / name).open("rb") as copied:
                os.fsync(copied.fileno())
        sync_folder(into)


def _root(state_folder: Place, dataset: str, flow: str) -> Place:
    return state_folder / "snapshots" / dataset / flow
