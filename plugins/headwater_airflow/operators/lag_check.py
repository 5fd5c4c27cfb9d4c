"""The check that turns red when a pipeline falls behind."""

from __future__ import annotations

from typing import Any, ClassVar

from headwater.alerts.incidents import Breach
from headwater_airflow.conditions.lag_reading import LagLimits, read_lag
from headwater_airflow.operators.pipeline_check import Measurement, PipelineCheckOperator


class LagCheckOperator(PipelineCheckOperator):
    """Measures every flow of a pipeline, and fails with a table of flow, lag and limit if one is over; no JVM.

    A lag that can't be measured counts as over: silence would hide trouble. Before a pipeline's first update there is
    nothing to check.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only the flows into this table.
        max_seconds: the allowed age of the oldest thing that is not read yet.
        max_records: how many records may be left to read.
        notifiers: see PipelineCheckOperator.

    """

    check: ClassVar[str] = "lag"
    advised: ClassVar[bool] = True

    def __init__(
        self,
        *,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float | None = None,
        max_records: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.dataset = dataset
        self.max_seconds = max_seconds
        self.max_records = max_records

    def measure(self) -> Measurement:
        """Measure the lag of every flow."""
        reading = read_lag(self.pipeline, self.dataset, LagLimits(self.max_seconds, self.max_records))
        if reading.missing:
            return Measurement((), reading.missing, reading.as_dict())
        text = reading.as_table()
        if reading.breaches:
            count = len({breach.flow for breach in reading.breaches})
            flows = "A flow is" if count == 1 else f"{count} flows are"
            text = f"{flows} over the limit.\n{text}"
        breaches = [
            Breach(f"{breach.dataset}/{breach.flow}/{breach.measure}", str(breach))
            for breach in reading.breaches
        ]
        return Measurement(tuple(breaches), text, reading.as_dict())
