"""What is not known of a batch is null in its record, and sums pass over it."""

from __future__ import annotations

from headwater.event_log.details import FlowStatus, flow_progress


def test_unknown_counts_are_null():
    """Without counts of the rules there is no zero, and the reason is beside it."""
    body = flow_progress(
        FlowStatus.RUNNING,
        metrics={"num_input_rows": None, "num_output_rows": 5},
        dropped=0,
        quarantined=0,
        quality_known=False,
        counts_origin="UNKNOWN",
        counts_reason="a file is gone",
    )["flow_progress"]
    assert body["metrics"] == {"num_output_rows": 5}
    assert body["data_quality"] == {
        "dropped_records": None,
        "quarantined_records": None,
        "expectations": [],
    }
    assert body["counts"] == {"origin": "UNKNOWN", "reason": "a file is gone"}


def test_counts_of_a_live_driver_say_nothing_of_their_origin():
    """Only batches of dead drivers have ``counts``; one that was counted again has no reason."""
    assert "counts" not in flow_progress(FlowStatus.RUNNING, dropped=0)["flow_progress"]
    again = flow_progress(FlowStatus.RUNNING, dropped=1, counts_origin="RECOMPUTED")["flow_progress"]
    assert again["counts"] == {"origin": "RECOMPUTED"}
    assert again["data_quality"]["dropped_records"] == 1
