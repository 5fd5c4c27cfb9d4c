"""The measures of each stream's newest batch, from the event log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from headwater.event_log.reader import events
from headwater.storage.place import Place

_MEASURES = (
    *("input_rows_per_second", "processed_rows_per_second", "batch_duration_ms"),
    *("state_rows", "state_bytes", "watermark_lag_seconds", "executor_time_ms"),
)


@dataclass(frozen=True)
class StreamMeasures:
    """What Spark reports about a flow's newest batch; None for what the query does not have.

    Rates are rows a second; ``watermark_lag_seconds``: how far the watermark was behind the clock.
    """

    flow: str
    dataset: str | None
    batch_id: int | None
    at: datetime
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    batch_duration_ms: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark_lag_seconds: float | None = None
    executor_time_ms: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The measures as JSON values."""
        return {**asdict(self), "at": self.at.isoformat()}


def stream_measures(state_folder: Place) -> list[StreamMeasures]:
    """The newest batch's measures of every flow that has any, in the order in which they first appear."""
    by_flow: dict[str, StreamMeasures] = {}
    records = events(
        state_folder, event_type="flow_progress", level="METRICS", containing='"batch_duration_ms"'
    )
    for record in records:
        origin, metrics = record["origin"], record["details"].get("flow_progress", {}).get("metrics", {})
        measures = {name: metrics.get(name) for name in _MEASURES}
        by_flow[origin["flow_name"]] = StreamMeasures(
            origin["flow_name"], origin["dataset_name"], origin["batch_id"], record["timestamp"], **measures
        )
    return list(by_flow.values())
