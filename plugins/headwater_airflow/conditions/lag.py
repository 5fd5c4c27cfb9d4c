from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater_airflow.conditions.condition import Condition, Sighting
from headwater_airflow.conditions.lag_reading import LagLimits, read_lag


@dataclass(frozen=True)
class LagCondition(Condition):
    """A pipeline, or the flows into one table, are at most ``limits`` behind, by measure. A lag not known is over them."""

    pipeline: str
    dataset: str | None
    limits: Mapping[str, float]

    def look(self) -> Sighting:
        """Measure how far every flow is behind its sources."""
        reading = read_lag(self.pipeline, self.dataset, LagLimits(**self.limits))
        return Sighting(reading.within_limits, reading.summary(), reading.as_dict())
