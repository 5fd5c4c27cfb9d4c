"""What a flow did, summed up from its records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.flow_result import fold_flow_results
from headwater.incremental.techniques import Issue, IssueType, Planned, Technique


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


def test_how_a_view_was_refreshed():
    """The last plan of an update counts: one whose incremental refresh failed is recomputed. Other flows have none."""
    plans = [
        Planned(Technique.ROW_BASED),
        Planned(Technique.COMPLETE_RECOMPUTE, (Issue(IssueType.DATA_FILE_MISSING, "files are gone"),)),
    ]
    planned = [{**record(0), "details": plan.details()} for plan in plans]
    (result,) = fold_flow_results([record(1, num_output_rows=3), *planned, record(2, num_output_rows=4)])
    assert (result.technique, result.reason) == ("COMPLETE_RECOMPUTE", "files are gone [DATA_FILE_MISSING]")
    assert result.output_rows == 7
    (other,) = fold_flow_results([record(1, num_output_rows=3)])
    assert (other.technique, other.reason) == (None, None)
