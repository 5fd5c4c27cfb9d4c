"""What a flow did, summed up from its records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.flow_result import fold_flow_results


def record(number: int, **metrics: int) -> dict[str, Any]:
    """The record of a batch."""
    origin = {"update_id": "u", "dataset_name": "t", "flow_name": "f", "batch_id": number, "epoch": 0}
    details = flow_progress(FlowStatus.RUNNING, metrics=metrics)
    return {
        "id": str(number),
        "origin": origin,
        "timestamp": datetime.now(UTC),
        "details": details,
        "error": None,
    }


def test_counts_of_changes():
    """What became of change events is added up over batches; a flow that merges none says nothing of it."""
    merged = [
        record(n, num_output_rows=3, num_upserted_rows=3, num_deleted_rows=1, num_late_events=n, num_superseded_events=2, num_tombstones=1)
        for n in (1, 2)
    ]  # fmt: skip
    (result,) = fold_flow_results(merged)
    assert result.changes == {"upserted": 6, "deleted": 2, "late": 3, "superseded": 4, "tombstones": 2}
    (plain,) = fold_flow_results([record(1, num_output_rows=3)])
    assert plain.changes is None
