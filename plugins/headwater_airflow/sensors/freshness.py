from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.errors import UsageError
from headwater_airflow.conditions.freshness import FreshnessCondition
from headwater_airflow.sensors.waiting import WaitingSensor, not_negative


class FreshnessSensor(WaitingSensor):
    """Waits until the newest data of a table, or of every table of a pipeline, is young enough.

    The age is that of the last commit that changed rows: optimize does not make a table fresh. With ``event_time`` it is the age of the
    newest event, as ``SELECT MAX(event_timestamp)`` gives it, from the table's log. The result has every table's age and version.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only this table.
        max_seconds: the allowed age.
        event_time: the column with the time of events; needs ``dataset``.

    """

    template_fields: Sequence[str] = ("pipeline", "dataset")

    def __init__(
        self,
        *,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float,
        event_time: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if event_time is not None and dataset is None:
            raise UsageError(
                "event_time needs a dataset.", remedy="Name the table that has the column: dataset=..."
            )
        self.event_time = event_time
        self.pipeline = pipeline
        self.dataset = dataset
        self.max_seconds = not_negative("max_seconds", max_seconds)

    def condition(self) -> FreshnessCondition:
        """What is waited for."""
        return FreshnessCondition(self.pipeline, self.dataset, self.max_seconds, self.event_time)
