from __future__ import annotations

from dataclasses import dataclass

from headwater.metrics.freshness import pipeline_freshness
from headwater_airflow.conditions.condition import Condition, Sighting, not_run_yet, observed_pipeline


@dataclass(frozen=True)
class FreshnessCondition(Condition):
    """The newest data of a table, or of every table of a pipeline, is at most ``max_seconds`` old."""

    pipeline: str
    dataset: str | None
    max_seconds: float

    def look(self) -> Sighting:
        """Read the age of the last commit of data from each table's log."""
        project, manifest = observed_pipeline(self.pipeline, self.dataset)
        if manifest is None:
            return not_run_yet(self.pipeline)
        tables = [
            entry for entry in pipeline_freshness(project, manifest) if self.dataset in (None, entry.dataset)
        ]
        stale = [entry for entry in tables if entry.seconds is None or entry.seconds > self.max_seconds]
        remarks = [
            f"{entry.dataset} has no data yet"
            if entry.seconds is None
            else f"{entry.dataset} is {entry.seconds:,.0f} s old"
            for entry in stale
        ]
        summary = "; ".join(remarks) or f"The data of {len(tables)} tables is fresh."
        return Sighting(not stale, summary, {"datasets": [entry.as_dict() for entry in tables]})
