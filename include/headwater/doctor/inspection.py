"""What a flow's checkpoint holds, beside the heads of its sources."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.checkpoints.listing import CheckpointEntry, list_checkpoints, position_summary
from headwater.checkpoints.offsets import committed_offsets, watermark_ms
from headwater.delta_log.table_history import head_version
from headwater.doctor.flow_case import FlowCase
from headwater.errors import CheckpointUnreadable
from headwater.metrics.lag import SourceLag, flow_lag
from headwater.preflight.state_checks import size_by_operator


def inspect_flow(case: FlowCase) -> dict[str, Any]:
    """Everything there is to see of a flow, as JSON values; what can't be read is named under ``problem``."""
    start, state = case.start, case.start.state
    epochs = [
        entry for entry in list_checkpoints(case.project.state_folder)
        if (entry.dataset, entry.flow) == (case.flow.target, case.flow.name)
    ]  # fmt: skip
    live = next((entry for entry in epochs if entry.epoch == state.epoch), None)
    return {
        "flow": case.flow.name,
        "dataset": case.flow.target,
        "epoch": state.epoch,
        "pending_epoch": state.pending_epoch,
        "query_id": state.query_id,
        "folder": str(start.folder),
        "planned_batches": _span(start.planned),
        "committed_batches": _span(start.committed),
        "last_batch": live.last_batch if live else None,
        "age_seconds": live.age if live else None,
        "watermark": _watermark(case),
        "sources": _sources(case),
        "table": _table(case),
        "state": _state(case),
        "epochs": [_epoch(entry) for entry in epochs],
        "snapshots": [snapshot.as_dict() for snapshot in case.snapshots],
        "versions": dict(state.versions),
        "size": sum(entry.size for entry in epochs),
        "problem": live.problem if live else None,
    }


def _sources(case: FlowCase) -> list[dict[str, Any]]:
    try:
        offsets = committed_offsets(case.start.folder)
    except (CheckpointUnreadable, StorageNotReadable):
        offsets = None
    ends = offsets.sources if offsets is not None else ()
    parts = flow_lag(case.project, case.flow).sources
    return [
        _source(index, part, ends[index] if index < len(ends) else None) for index, part in enumerate(parts)
    ]


def _source(index: int, part: SourceLag, end: str | None) -> dict[str, Any]:
    backlog = part.backlog
    return {
        "source": part.name,
        "index": index,
        "offset": end,
        "position": position_summary(end),
        "behind": backlog.as_dict(),
    }


def _table(case: FlowCase) -> dict[str, Any] | None:
    if case.table is None:
        return None
    return {
        "folder": str(case.table),
        "id": case.start.sink_id,
        "version": head_version(case.table),
        "last_batch": case.written,
    }


def _state(case: FlowCase) -> dict[str, Any] | None:
    if not case.stateful:
        return None
    return {
        "settings": dict(case.start.state.state_settings),
        "operators": list(case.start.state.plan),
        "stores": len(case.start.state.state_stores),
        "size_by_operator": size_by_operator(case.start.folder),
    }


def _watermark(case: FlowCase) -> str | None:
    try:
        millis = watermark_ms(case.start.folder)
    except (CheckpointUnreadable, StorageNotReadable):
        return None
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat() if millis is not None else None


def _epoch(entry: CheckpointEntry) -> dict[str, Any]:
    return {
        "epoch": entry.epoch,
        "live": entry.live,
        "last_batch": entry.last_batch,
        "age_seconds": entry.age,
        "size": entry.size,
        "problem": entry.problem,
    }


def _span(batches: list[int]) -> str | None:
    return None if not batches else str(batches[0]) if len(batches) == 1 else f"{batches[0]}-{batches[-1]}"
