"""The checks of freshness, rules and checkpoints."""

from __future__ import annotations

from typing import Any, ClassVar

from headwater.alerts.incidents import Breach
from headwater.metrics.checkpoint_health import Health, pipeline_health
from headwater.metrics.freshness import Freshness, pipeline_freshness
from headwater.metrics.rule_rates import rule_rates
from headwater_airflow.conditions.condition import observed_pipeline
from headwater_airflow.operators.pipeline_check import Measurement, PipelineCheckOperator
from headwater_airflow.roots import pipeline_project


class FreshnessCheckOperator(PipelineCheckOperator):
    """Fails while the newest data of a table is older than ``max_minutes``; a table without data counts as too old.

    Before a pipeline's first update there is nothing to check.
    """

    check: ClassVar[str] = "freshness"

    def __init__(self, *, max_minutes: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_minutes = max_minutes

    def measure(self) -> Measurement:
        """Read the age of every table."""
        project, manifest = observed_pipeline(self.pipeline, None)
        if manifest is None:
            return _never_ran(self.pipeline)
        found = pipeline_freshness(project, manifest)
        if all(entry.version is None for entry in found):
            return _never_ran(self.pipeline)
        stale = [entry for entry in found if entry.seconds is None or entry.seconds > self.max_minutes * 60]
        breaches = tuple(Breach(entry.dataset, self._message(entry)) for entry in stale)
        values = {"datasets": [entry.as_dict() for entry in found], "max_minutes": self.max_minutes}
        return Measurement(breaches, _text(breaches, f"The data of {len(found)} tables is fresh."), values)

    def _message(self, entry: Freshness) -> str:
        if entry.seconds is None:
            return f"{entry.dataset} has no data yet, limit {self.max_minutes:g} minutes"
        return f"{entry.dataset}: data is {entry.seconds / 60:,.0f} minutes old, limit {self.max_minutes:g}"


class RulesCheckOperator(PipelineCheckOperator):
    """Fails while more than ``max_percent`` of the rows of a table failed one rule.

    What counts are all batches of the newest update in which the rule saw rows, whether it warns, drops or quarantines.
    """

    check: ClassVar[str] = "rules"

    def __init__(self, *, max_percent: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_percent = max_percent

    def measure(self) -> Measurement:
        """Add up the event log's newest records."""
        rates = rule_rates(pipeline_project(self.pipeline).state_folder)
        breaches = tuple(
            Breach(
                f"{rate.dataset}/{rate.rule}",
                f"{rate.dataset}: {rate.failed:,} of {rate.failed + rate.passed:,} rows "
                f"({rate.failed_percent:.1f} %) failed {rate.rule}, limit {self.max_percent:g} %",
            )
            for rate in rates
            if rate.failed_percent > self.max_percent
        )
        values = {"rules": [rate.as_dict() for rate in rates], "max_percent": self.max_percent}
        return Measurement(breaches, _text(breaches, f"{len(rates)} rules are within the limit."), values)


class CheckpointCheckOperator(PipelineCheckOperator):
    """Fails while a checkpoint is sick: damaged, gone, or of another table than that which is there."""

    check: ClassVar[str] = "checkpoints"

    def measure(self) -> Measurement:
        """Read the live checkpoints."""
        project, manifest = observed_pipeline(self.pipeline, None)
        if manifest is None:
            return _never_ran(self.pipeline)
        found = pipeline_health(project, manifest)
        breaches = tuple(
            Breach(f"{entry.dataset}/{entry.flow}", f"{entry.flow}: {entry.problem}")
            for entry in found
            if entry.health is Health.SICK
        )
        values = {"flows": [entry.as_dict() for entry in found]}
        return Measurement(breaches, _text(breaches, f"No checkpoint of {len(found)} is sick."), values)


def _never_ran(pipeline: str) -> Measurement:
    return Measurement((), f"{pipeline} has not run yet: there is nothing to check.")


def _text(breaches: tuple[Breach, ...], otherwise: str) -> str:
    return "\n".join(breach.message for breach in breaches) or otherwise
