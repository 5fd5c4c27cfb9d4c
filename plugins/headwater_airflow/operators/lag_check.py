"""The check that turns red when a pipeline falls behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from headwater.errors import HeadwaterError
from headwater_airflow.lag_reading import LagLimits, read_lag


class LagCheckOperator(BaseOperator):  # type: ignore[misc]  # Airflow's types are not followed
    """Measures every flow of a pipeline, and fails with a table of flow, lag and limit if one is over; no JVM.

    A lag that can't be measured counts as over: silence would hide trouble. Before a pipeline's first update there is
    nothing to check.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only the flows into this table.
        max_seconds: the allowed age of the oldest thing that is not read yet.
        max_records: how many records may be left to read.

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#fdf3c8"

    def __init__(
        self,
        *,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float | None = None,
        max_records: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.dataset = dataset
        self.max_seconds = max_seconds
        self.max_records = max_records

    def execute(self, context: Any) -> dict[str, Any]:  # noqa: ARG002
        """Measure, log the table, and judge."""
        try:
            reading = read_lag(self.pipeline, self.dataset, LagLimits(self.max_seconds, self.max_records))
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        if reading.missing:
            self.log.info(reading.missing)
            return reading.as_dict()
        if reading.breaches:
            count = len({breach.flow for breach in reading.breaches})
            flows = "A flow is" if count == 1 else f"{count} flows are"
            raise AirflowFailException(f"{flows} over the limit.\n{reading.as_table()}")
        self.log.info(reading.as_table())
        return reading.as_dict()
