"""Lets a DAG wait until a pipeline has caught up with its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater_airflow.conditions.lag import LagCondition
from headwater_airflow.conditions.lag_reading import LagLimits
from headwater_airflow.sensors.waiting import WaitingSensor


class LagSensor(WaitingSensor):
    """Waits in the triggerer until the lag is at or under every given limit; needs no JVM, and no worker meanwhile.

    A lag that is not known (a broker does not answer, the pipeline never ran) is waited for. ``poke_interval`` and
    ``timeout`` are in seconds, as of any sensor; when the time is over, the task fails with AirflowSensorTimeout.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only the flows into this table.
        max_seconds: the age of the oldest thing that is not read yet.
        max_records: how many records are not read yet; of Kafka, offsets.
        max_bytes, max_files: how much of files and tables is not read yet.
        max_versions: how many commits of tables are not read yet.

    Raises:
        ValueError: if no limit is given, or a limit is negative.

    """

    template_fields: Sequence[str] = ("pipeline", "dataset")

    def __init__(
        self,
        *,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float | None = None,
        max_records: float | None = None,
        max_bytes: float | None = None,
        max_files: float | None = None,
        max_versions: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.limits = LagLimits(max_seconds, max_records, max_bytes, max_files, max_versions)
        if not self.limits.by_measure or min(self.limits.by_measure.values()) < 0:
            raise ValueError("A LagSensor needs max_seconds or max_records, or another limit, 0 or more.")
        self.pipeline = pipeline
        self.dataset = dataset

    def condition(self) -> LagCondition:
        """What is waited for."""
        return LagCondition(self.pipeline, self.dataset, self.limits.by_measure)
