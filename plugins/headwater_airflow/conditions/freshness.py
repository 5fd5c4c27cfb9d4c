from __future__ import annotations

from dataclasses import dataclass

from headwater.metrics.event_freshness import EventFreshness, table_event_freshness
from headwater.metrics.freshness import pipeline_freshness
from headwater_airflow.conditions.condition import Condition, Sighting, not_run_yet, observed_pipeline


@dataclass(frozen=True)
class FreshnessCondition(Condition):
    """The newest data of a table, or of every table of a pipeline, is at most ``max_seconds`` old.

    With ``event_time``, a column, its newest event.
    """

    pipeline: str
    dataset: str | None
    max_seconds: float
    event_time: str | None = None

    def look(self) -> Sighting:
        """Read the age of the last commit of data from each table's log."""
        project, manifest = observed_pipeline(self.pipeline, self.dataset)
        if manifest is None:
            return not_run_yet(self.pipeline)
        if self.event_time is not None and self.dataset is not None:
            path = manifest.table_path(project.warehouse, self.dataset)
            return self._of_events(table_event_freshness(path, self.dataset, self.event_time))
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

    def _of_events(self, entry: EventFreshness) -> Sighting:
        met = entry.seconds is not None and entry.seconds <= self.max_seconds
        summary = f"{entry.dataset} has no {entry.column} yet"
        if entry.unknown:
            summary = f"{entry.dataset}: {entry.unknown}"
        elif entry.seconds is not None:
            summary = f"the newest {entry.column} of {entry.dataset} is {entry.seconds:,.0f} s ago"
        return Sighting(met, summary, {"datasets": [entry.as_dict()]})
