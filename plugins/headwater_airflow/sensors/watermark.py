from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headwater.errors import UsageError
from headwater_airflow.conditions.watermark import WatermarkCondition
from headwater_airflow.sensors.waiting import WaitingSensor, not_negative


class WatermarkSensor(WaitingSensor):
    """Waits until the watermark of every stream has passed a point in time, or is near enough to now.

    Behind the watermark, windows are closed: ``reached="{{ data_interval_end }}"`` waits for the last row of an interval
    (later ones are late). Streams without a watermark do not count; if none has one, the sensor waits.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only streams into this table.
        max_seconds: how far the watermark may be behind now.
        reached: a time, or its ISO format (UTC where it has no zone); a template.

    Raises:
        ValueError: if neither is given.

    """

    template_fields: Sequence[str] = ("pipeline", "dataset", "reached")

    def __init__(
        self,
        *,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float | None = None,
        reached: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if max_seconds is None and reached is None:
            raise ValueError("A WatermarkSensor needs max_seconds or reached.")
        self.pipeline = pipeline
        self.dataset = dataset
        self.max_seconds = None if max_seconds is None else not_negative("max_seconds", max_seconds)
        self.reached = reached.isoformat() if isinstance(reached, datetime) else reached

    def condition(self) -> WatermarkCondition:
        """What is waited for."""
        if self.reached is not None:
            _check_time(self.reached)
        return WatermarkCondition(self.pipeline, self.dataset, self.max_seconds, self.reached)


def _check_time(reached: str) -> None:
    try:
        datetime.fromisoformat(reached)
    except (TypeError, ValueError):
        raise UsageError(
            f"reached has to be a time in ISO format, and is {reached!r}.",
            remedy="Check what the template of reached gives.",
        ) from None
