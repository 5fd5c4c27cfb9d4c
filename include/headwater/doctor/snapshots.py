"""Copies of a flow's live checkpoint, kept beside the checkpoints and never changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.offsets import last_committed_batch
from headwater.checkpoints.record_files import recorded
from headwater.checkpoints.whole_folders import (
    clear_unfinished,
    copy_durably,
    hidden_folders,
    make_folder,
    unfinished,
)
from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place
from headwater.storage.walking import copy_file, files_and_folders, folders_in, remove_tree, unchecked

_ABOUT = "snapshot.json"
_CHECKPOINT = "checkpoint"
_TIME = "%Y%m%dT%H%M%S%fZ"
_NAME = re.compile(r"(\d{8}T\d{12}Z)-epoch\d")
# How the reason begins of a copy that is taken before something is changed.
BEFORE = "before "


@dataclass(frozen=True)
class Snapshot:
    """A copy of an epoch. ``taken_at``: UTC, ISO 8601, and behind that of the copies before; ``last_batch``: the last that was done, None for none."""

    name: str
    dataset: str
    flow: str
    epoch: int
    last_batch: int | None
    taken_at: str
    reason: str
    folder: Place

    @property
    def checkpoint(self) -> Place:
        """The copied folder of Spark's."""
        return self.folder / _CHECKPOINT

    @property
    def of_repair(self) -> bool:
        """Whether a repair, or a move, made it of what it met, which may be damaged."""
        return self.reason.startswith(BEFORE)

    def state(self) -> FlowState:
        """The flow's state when it was taken."""
        state = FlowCheckpoint(self.folder).read_state()
        return FlowState(epoch=self.epoch) if state is None else state

    def as_dict(self) -> dict[str, Any]:
        """The snapshot as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "folder": str(self.folder)}


def snapshots_of(state_folder: Place, dataset: str, flow: str) -> list[Snapshot]:
    """The snapshots of a flow, oldest first; raises FlowStateDamaged where one does not say what it is.

    Not those whose writer did not come to its end, though all may be there: the next copy that is taken removes them.
    """
    root = _root(state_folder, dataset, flow)
    try:
        files, folders = files_and_folders(root)
    except FileNotFoundError:
        return []
    whole = sorted({*folders} - unfinished(files) - {*hidden_folders(folders)})
    snapshots = [snapshot for name in whole if (snapshot := _snapshot(root / name / _ABOUT)) is not None]
    return sorted(snapshots, key=lambda snapshot: (snapshot.taken_at, snapshot.name))


def has_snapshots(state_folder: Place, dataset: str, flow: str) -> bool:
    """Whether a flow has a snapshot, whatever it says."""
    root = _root(state_folder, dataset, flow)
    return root.is_dir() and any(root.glob(f"*/{_ABOUT}"))


def _snapshot(file: Place) -> Snapshot | None:
    return recorded(
        file,
        lambda data: Snapshot(**data, folder=file.parent),
        what="The file that says what a copy of a checkpoint is",
        unknown="what a copy of a checkpoint is",
        remedy="Move the copy's folder to another place: the flow's other copies are used then.",
    )


def take_snapshot(
    state_folder: Place,
    checkpoint: FlowCheckpoint,
    *,
    reason: str,
    check: Callable[[], None] = unchecked,
) -> Snapshot | None:
    """Copy a flow's live epoch and state; no update may run meanwhile.

    ``check``: raises where one may; a copy of two moments, or of what has gone, is then none.

    Returns:
        The snapshot, durable; None where there is nothing to copy.
    """
    state = checkpoint.surviving_state() or FlowState()
    source = checkpoint.epoch_folder(state.epoch)
    if not source.is_dir() and not checkpoint.state_file.exists():
        return None
    dataset, flow = checkpoint.folder.parent.name, checkpoint.folder.name
    root = _root(state_folder, dataset, flow)
    now = _moment(folders_in(root), datetime.now(UTC))
    last = last_committed_batch(source)
    name = f"{now:{_TIME}}-epoch{state.epoch}" + (f"-batch{last}" if last is not None else "")
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
            copy_durably(source, folder / _CHECKPOINT, check=check)
        if checkpoint.state_file.exists():
            copy_file(checkpoint.state_file, folder / "flow.json")
        check()
        # Last: a copy without it is not a snapshot.
        write_atomically(folder / _ABOUT, json.dumps(about, indent=1) + "\n")

    target = make_folder(root / name, fill)
    clear_unfinished(root)
    return Snapshot(**about, folder=target)  # type: ignore[arg-type]


def remove_snapshot(folder: Place) -> None:
    """Remove a copy, or what an interrupted one has left: first what says that it is one, since files of a disk go in any order."""
    if isinstance(folder, Path):
        (folder / _ABOUT).unlink(missing_ok=True)
    remove_tree(folder)


def _moment(names: Iterable[str], now: datetime) -> datetime:
    """Now; where the clock of whoever took the newest copy is ahead of ours, just behind that one: copies are ordered by these times."""
    times = [match[1] for name in names if (match := _NAME.match(name))]
    newest = max(times, default="")
    if f"{now:{_TIME}}" > newest:
        return now
    try:
        return datetime.strptime(newest, _TIME).replace(tzinfo=UTC) + timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return now  # a name that we have not made


def _root(state_folder: Place, dataset: str, flow: str) -> Place:
    return state_folder / "snapshots" / dataset / flow
