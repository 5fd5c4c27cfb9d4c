from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater_airflow.conditions.checkpoint_health import CheckpointHealthCondition
from headwater_airflow.sensors.waiting import WaitingSensor


class CheckpointHealthSensor(WaitingSensor):
    """Waits until no stream's checkpoint is sick: damaged, gone, or not of the table that it belongs to.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only streams into this table.

    """

    template_fields: Sequence[str] = ("pipeline", "dataset")

    def __init__(self, *, pipeline: str, dataset: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.dataset = dataset

    def condition(self) -> CheckpointHealthCondition:
        """What is waited for."""
        return CheckpointHealthCondition(self.pipeline, self.dataset)
