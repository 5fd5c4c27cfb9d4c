"""The metrics that Prometheus pulls: how things stand, and what the newest update did. All of them are gauges."""

from __future__ import annotations

_FLOW = ("pipeline", "dataset", "flow")
# By name: what it says, and its labels.
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "headwater_pipeline_readable": ("1 where the figures of the pipeline could be read, else 0.", ("pipeline",)),
    "headwater_last_update_state": ("1 for the state of the newest update, 0 for the others.", ("pipeline", "state")),
    "headwater_last_update_started_timestamp_seconds": ("When the newest update began.", ("pipeline",)),
    "headwater_last_update_duration_seconds": ("How long the newest update took; absent while it runs.", ("pipeline",)),
    "headwater_last_update_flow_failed": ("1 where the flow failed in the newest update that had it.", _FLOW),
    "headwater_last_update_flow_rows": ("Rows of the flow in the newest update.", (*_FLOW, "kind")),
    "headwater_flow_lag_known": ("1 where the flow's lag is known, else 0.", _FLOW),
    "headwater_flow_lag_records": ("Records that the flow has not read yet.", _FLOW),
    "headwater_flow_lag_bytes": ("Bytes that the flow has not read yet.", _FLOW),
    "headwater_flow_lag_files": ("Files that the flow has not read yet.", _FLOW),
    "headwater_flow_lag_versions": ("Commits with data that the flow has not read yet.", _FLOW),
    "headwater_flow_lag_seconds": ("Age of the oldest thing that the flow has not read yet.", _FLOW),
    "headwater_flow_state_rows": ("Rows in the state of the flow after its newest batch.", _FLOW),
    "headwater_flow_state_bytes": ("Bytes in the state of the flow after its newest batch.", _FLOW),
    "headwater_flow_watermark_lag_seconds": ("How far the watermark was behind the clock.", _FLOW),
    "headwater_dataset_age_seconds": ("Age of the newest commit with data.", ("pipeline", "dataset")),
    "headwater_dataset_version": ("Version of the newest commit with data.", ("pipeline", "dataset")),
    "headwater_rule_rows": (
        "Rows that passed or failed the expectation in its newest update.",
        ("pipeline", "dataset", "rule", "outcome"),
    ),
}  # fmt: skip
