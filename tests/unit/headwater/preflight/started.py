"""The start of a flow over a checkpoint on disk that is laid out batch by batch."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart


def end_of(batch: int) -> str:
    """Where the one source of a flow stands after a batch."""
    return json.dumps({"reservoirVersion": batch + 1, "index": -1})


def watermark_before(batch: int) -> int:
    """The watermark that a batch begins with."""
    return 1000 * batch


def plan(folder: Path, batch: int) -> Path:
    """Plan a batch."""
    file = folder / "offsets" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'v1\n{{"batchWatermarkMs":{watermark_before(batch)}}}\n{end_of(batch)}')
    return file


def mark(folder: Path, batch: int) -> Path:
    """Mark a batch as done."""
    file = folder / "commits" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark_before(batch + 1)}}}')
    return file


def started(
    tmp_path: Path, planned: Iterable[int] = (), marked: Iterable[int] = (), *, table: Path | None = None, sink: bool = False,
    written: int | None = None, positions: Collection[int] = (), recorded: int | None = None, query: str | None = "q",
    state: Mapping[str, Any] | None = None, **more: Any,
) -> FlowStart:  # fmt: skip
    """A flow's start.

    Args:
        table: the table's folder; a path that is not looked at where it is not given. ``sink``: the target is no table.
        written: the last batch that the table has.
        positions: the batches of which the end is recorded outside the checkpoint; ``recorded``: the last batch that is.
        query: the id in the checkpoint.
    """
    checkpoint = FlowCheckpoint(tmp_path / "state" / "checkpoints" / "orders" / "orders")
    known = FlowState(**{"query_id": "q", "sink_id": "id", **(state or {})})
    checkpoint.write_state(known)
    folder = tmp_path / "state" / "checkpoints" / "orders" / "orders" / str(known.epoch)
    folder.mkdir(exist_ok=True)
    if query is not None:
        (folder / "metadata").write_text(json.dumps({"id": query}))
    for batch in planned:
        plan(folder, batch)
    for batch in marked:
        mark(folder, batch)
    given: dict[str, Any] = {
        "position": lambda batch: (end_of(batch),) if batch in positions else None, "last_recorded": lambda: recorded, **more,
    }  # fmt: skip
    target = None if sink else table or tmp_path / "table"
    start = FlowStart("p", "orders", "orders", checkpoint, known, target, "id", is_sink=sink, **given)
    start.__dict__["written"] = written
    return start
