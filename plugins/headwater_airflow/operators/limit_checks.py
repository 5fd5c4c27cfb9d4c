"""The checks of freshness, rules, checkpoints, pace, retention and advice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from headwater.alerts.incidents import Breach
from headwater.definitions.airflow_spec import EventFreshnessSpec
from headwater.definitions.finding import Severity
from headwater.event_log.reader import events
from headwater.metrics.checkpoint_health import Health, pipeline_health
from headwater.metrics.event_freshness import EventFreshness, pipeline_event_freshness
from headwater.metrics.freshness import Freshness, pipeline_freshness
from headwater.metrics.pace import FlowPace, flow_intervals, flow_paces
from headwater.metrics.retention import RetentionUse, retention_use
from headwater.metrics.rule_rates import rule_rates
from headwater.storage.place import Place
from headwater_airflow.conditions.advice import read_advice
from headwater_airflow.conditions.condition import observed_pipeline
from headwater_airflow.operators.pipeline_check import Measurement, PipelineCheckOperator
from headwater_airflow.roots import pipeline_project


class FreshnessCheckOperator(PipelineCheckOperator):
    """Fails while the newest data of a table is older than ``max_minutes``; a table without data counts as too old.

    ``events``: how old the newest event of a table may be, by the column with its time; a time that is not known counts as too
    old. Before a pipeline's first update there is nothing to check.
    """

    check: ClassVar[str] = "freshness"

    def __init__(
        self,
        *,
        max_minutes: float | None = None,
        events: Mapping[str, EventFreshnessSpec] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.max_minutes = max_minutes
        # Plain values: Airflow serializes what an operator has.
        self.events = {table: spec.model_dump() for table, spec in (events or {}).items()}

    def measure(self) -> Measurement:
        """Read the age of every table."""
        project, manifest = observed_pipeline(self.pipeline, None)
        if manifest is None:
            return _never_ran(self.pipeline)
        entries = pipeline_freshness(project, manifest)
        if all(entry.version is None for entry in entries) and not _has_written(project.state_folder):
            return _never_ran(self.pipeline)
        specs = {table: EventFreshnessSpec(**values) for table, values in self.events.items()}
        newest = pipeline_event_freshness(project, manifest, specs)
        over = [self._of_commits(entry) for entry in entries]
        over += [_of_events(entry, specs[entry.dataset].minutes) for entry in newest]
        breaches = tuple(breach for breach in over if breach is not None)
        values = {
            "datasets": [entry.as_dict() for entry in entries],
            "max_minutes": self.max_minutes,
            "events": [entry.as_dict() for entry in newest],
        }
        return Measurement(breaches, _text(breaches, f"The data of {len(entries)} tables is fresh."), values)

    def _of_commits(self, entry: Freshness) -> Breach | None:
        if self.max_minutes is None:
            return None
        limit = f"limit {self.max_minutes:g}"
        if entry.seconds is None:
            return Breach(entry.dataset, f"{entry.dataset} has no data yet, {limit} minutes")
        if entry.seconds <= self.max_minutes * 60:
            return None
        return Breach(
            entry.dataset, f"{entry.dataset}: data is {entry.seconds / 60:,.0f} minutes old, {limit}"
        )


def _of_events(entry: EventFreshness, minutes: float) -> Breach | None:
    key, limit = f"{entry.dataset}/{entry.column}", f"limit {minutes:g}"
    if entry.seconds is None:
        why = (
            f"the age of its events is not known: {entry.unknown}" if entry.unknown else "it has no event yet"
        )
        return Breach(key, f"{entry.dataset}: {why}, {limit} minutes")
    if entry.seconds <= minutes * 60:
        return None
    return Breach(
        key,
        f"{entry.dataset}: the newest {entry.column} is {entry.seconds / 60:,.0f} minutes ago, {limit}",
    )


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
        health = pipeline_health(project, manifest)
        breaches = tuple(
            Breach(f"{entry.dataset}/{entry.flow}", f"{entry.flow}: {entry.problem}")
            for entry in health
            if entry.health is Health.SICK
        )
        values = {"flows": [entry.as_dict() for entry in health]}
        return Measurement(breaches, _text(breaches, f"No checkpoint of {len(health)} is sick."), values)


class PaceCheckOperator(PipelineCheckOperator):
    """Fails while the newest batches of a flow took longer than ``max_seconds``, in the median of at most five.

    A stream whose batches take longer than its trigger's interval falls behind for good: without ``max_seconds`` that interval, of the
    flow if it has one of its own, is the limit.
    """

    check: ClassVar[str] = "pace"
    advised: ClassVar[bool] = True

    def __init__(self, *, max_seconds: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_seconds = max_seconds

    def measure(self) -> Measurement:
        """Take the durations from the event log."""
        project, manifest = observed_pipeline(self.pipeline, None)
        if manifest is None:
            return _never_ran(self.pipeline)
        paces = flow_paces(project.state_folder)
        intervals = flow_intervals(project, manifest) if self.max_seconds is None else {}
        breaches = tuple(
            breach for pace in paces if (breach := self._breach(pace, intervals.get(pace.flow))) is not None
        )
        values = {"flows": [pace.as_dict() for pace in paces], "max_seconds": self.max_seconds}
        return Measurement(breaches, _text(breaches, f"{len(paces)} flows keep their pace."), values)

    def _breach(self, pace: FlowPace, interval: float | None) -> Breach | None:
        limit = interval if self.max_seconds is None else self.max_seconds
        if limit is None or pace.seconds <= limit:
            return None
        of_trigger = ", the interval of its trigger" if self.max_seconds is None else ""
        return Breach(
            f"{pace.dataset}/{pace.flow}",
            f"{pace.flow}: its newest {pace.batches} batches took {pace.seconds:.1f} s (median), limit {limit:g}{of_trigger}",
        )


class RetentionCheckOperator(PipelineCheckOperator):
    """Fails while a stream has left a commit of a table unread for more than ``max_percent`` of the time that it is kept.

    After that time the table's log forgets the commit, or vacuum removes its files, and the stream can't go on.
    """

    check: ClassVar[str] = "retention"

    def __init__(self, *, max_percent: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_percent = max_percent

    def measure(self) -> Measurement:
        """Hold positions in checkpoints to the properties of the tables that are read."""
        project, manifest = observed_pipeline(self.pipeline, None)
        if manifest is None:
            return _never_ran(self.pipeline)
        uses = retention_use(project, manifest)
        breaches = tuple(
            Breach(f"{use.dataset}/{use.flow}/{use.source}", self._message(use))
            for use in uses
            if use.percent is None or use.percent > self.max_percent
        )
        values = {"streams": [use.as_dict() for use in uses], "max_percent": self.max_percent}
        return Measurement(breaches, _text(breaches, f"{len(uses)} streams are in time."), values)

    def _message(self, use: RetentionUse) -> str:
        if use.waiting is None or use.kept is None:
            return f"{use.flow}: what it has not read of {use.source} is not known ({use.reason})"
        return (
            f"{use.flow} has not read {use.source} for {use.waiting / 3600:.1f} hours, which keeps commits and files for "
            f"{use.kept / 3600:.1f} hours ({use.percent:.0f} %), limit {self.max_percent:g} %"
        )


class AdviceCheckOperator(PipelineCheckOperator):
    """Fails while ``headwater advise`` has a warning about the pipeline; the message has a line for each."""

    check: ClassVar[str] = "advice"

    def measure(self) -> Measurement:
        """Apply the rules of advice to what the pipeline is now."""
        findings = read_advice(self.pipeline)
        breaches = tuple(
            Breach(f"{finding.dataset}/{finding.flow}/{finding.code}", finding.line)
            for finding in findings
            if finding.severity is Severity.WARNING
        )
        values = {"findings": [finding.as_dict() for finding in findings]}
        return Measurement(breaches, _text(breaches, "There is no warning."), values)


def _never_ran(pipeline: str) -> Measurement:
    return Measurement((), f"{pipeline} has not run yet: there is nothing to check.")


def _has_written(state_folder: Place) -> bool:
    """Whether an update has ever written to a table: where there is none now, they are gone."""
    return bool(events(state_folder, event_type="flow_progress", containing='"version":', limit=1))


def _text(breaches: tuple[Breach, ...], otherwise: str) -> str:
    return "\n".join(breach.message for breach in breaches) or otherwise
