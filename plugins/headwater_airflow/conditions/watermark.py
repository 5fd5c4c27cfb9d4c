from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from headwater.metrics.watermark import WatermarkLag, pipeline_watermarks
from headwater_airflow.conditions.condition import Condition, Sighting, not_run_yet, observed_pipeline


@dataclass(frozen=True)
class WatermarkCondition(Condition):
    """The watermark of every stream (into ``dataset``) is near enough to now, or has passed a point in time.

    ``max_seconds``: behind now; ``reached``: a time in ISO format. Streams without a watermark do not count, but one
    must have one.
    """

    pipeline: str
    dataset: str | None
    max_seconds: float | None
    reached: str | None

    def look(self) -> Sighting:
        """Read the watermarks from the live checkpoints."""
        project, manifest = observed_pipeline(self.pipeline, self.dataset)
        if manifest is None:
            return not_run_yet(self.pipeline)
        lags = [
            lag
            for lag in pipeline_watermarks(project, manifest)
            if lag.watermark is not None and self.dataset in (None, lag.dataset)
        ]
        behind = [lag for lag in lags if not self._is_met(lag)]
        remarks = [f"the watermark of {lag.flow} is at {_shown(lag)}" for lag in behind]
        if not lags:
            remarks = ["no stream has a watermark yet"]
        payload = {"flows": [lag.as_dict() for lag in lags]}
        return Sighting(
            bool(lags) and not behind, "; ".join(remarks) or "The watermarks are reached.", payload
        )

    def _is_met(self, lag: WatermarkLag) -> bool:
        assert lag.watermark is not None
        assert lag.seconds is not None
        if self.max_seconds is not None and lag.seconds > self.max_seconds:
            return False
        return self.reached is None or lag.watermark >= _point(self.reached)


def _point(text: str) -> float:
    point = datetime.fromisoformat(text)
    return (point if point.tzinfo else point.replace(tzinfo=UTC)).timestamp()


def _shown(lag: WatermarkLag) -> str:
    return datetime.fromtimestamp(lag.watermark or 0, UTC).isoformat(timespec="seconds")
