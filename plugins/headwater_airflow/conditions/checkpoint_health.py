from __future__ import annotations

from dataclasses import dataclass

from headwater.metrics.checkpoint_health import Health, pipeline_health
from headwater_airflow.conditions.condition import Condition, Sighting, not_run_yet, observed_pipeline


@dataclass(frozen=True)
class CheckpointHealthCondition(Condition):
    """Every stream (into ``dataset``) could go on from its checkpoint."""

    pipeline: str
    dataset: str | None

    def look(self) -> Sighting:
        """Read the live checkpoints."""
        project, manifest = observed_pipeline(self.pipeline, self.dataset)
        if manifest is None:
            return not_run_yet(self.pipeline)
        checkpoints = [
            entry for entry in pipeline_health(project, manifest) if self.dataset in (None, entry.dataset)
        ]
        sick = [entry for entry in checkpoints if entry.health is Health.SICK]
        problems = [f"{entry.flow}: {entry.problem}" for entry in sick]
        summary = "; ".join(problems) or f"No checkpoint of {len(checkpoints)} is sick."
        return Sighting(not sick, summary, {"flows": [entry.as_dict() for entry in checkpoints]})
