"""What the page shows of one dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.source import SourceKind
from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult
from headwater.graph.manifest import DatasetEntry, FlowEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.checkpoint_health import CheckpointHealth, Health
from headwater.metrics.freshness import Freshness
from headwater.metrics.lag import FlowLag, flow_lag
from headwater_airflow.page.history import Batch, History, RuleTally
from headwater_airflow.page.sparkline import points
from headwater_airflow.page.wording import age, rows

_SPARKS = 40
_TABLES = (SourceKind.DATASET, SourceKind.DELTA)
# The worst first: a dataset is as well as its worst flow.
_ORDER = (
    FlowStatus.FAILED,
    FlowStatus.RESTARTING,
    FlowStatus.RUNNING,
    FlowStatus.STARTING,
    FlowStatus.QUEUED,
    FlowStatus.SKIPPED,
    FlowStatus.STOPPED,
    FlowStatus.IDLE,
    FlowStatus.COMPLETED,
    FlowStatus.EXCLUDED,
)


@dataclass(frozen=True)
class Rule:
    """An expectation, with what it found in the newest batches."""

    name: str
    constraint: str
    action: str
    tally: RuleTally

    @property
    def share(self) -> float | None:
        """The share of rows that passed."""
        total = self.tally.passed + self.tally.failed
        return self.tally.passed / total if total else None


@dataclass(frozen=True)
class Refresh:
    """How a materialized view was refreshed: technique, the rows that were written, and the reason."""

    technique: str
    rows: int
    reason: str


@dataclass(frozen=True)
class DatasetView:
    """A row of the table, and a box of the graph. ``state``: a flow's, in lower case; ``new`` before the
    first run, ``view`` where nothing is stored.

    ``refresh``: of a materialized view, how it was refreshed in the newest update, and why not in another way.
    """

    name: str
    kind: str
    comment: str
    flows: tuple[str, ...]
    state: str
    error: str | None
    freshness: Freshness | None
    backlog: str
    behind: bool
    spark: str
    rules: tuple[Rule, ...]
    quarantined: int
    dropped: int
    health: tuple[CheckpointHealth, ...]
    refresh: Refresh | None = None
    last_batch: datetime | None = None

    @property
    def sick(self) -> CheckpointHealth | None:
        """The first checkpoint that is sick."""
        return next((entry for entry in self.health if entry.health is Health.SICK), None)

    @property
    def share(self) -> float | None:
        """The share of rows that passed, over all rules."""
        passed = sum(rule.tally.passed for rule in self.rules)
        failed = sum(rule.tally.failed for rule in self.rules)
        return passed / (passed + failed) if passed + failed else None

    @property
    def is_stored(self) -> bool:
        """Whether there is something on disk to be fresh."""
        return self.freshness is not None


def dataset_view(
    project: PipelineProject,
    manifest: Manifest,
    entry: DatasetEntry,
    history: History,
    freshness: Freshness | None,
    health: Sequence[CheckpointHealth],
) -> DatasetView:
    """Put together what is known of a dataset."""
    flows = manifest.flows_into(entry.name)
    results = [history.results[flow.name] for flow in flows if flow.name in history.results]
    state = next((s for s in _ORDER if any(result.state == s for result in results)), None)
    batches = sorted(
        (batch for flow in flows for batch in history.batches.get(flow.name, ())), key=lambda b: b.at
    )
    is_view = entry.kind is DatasetKind.TEMPORARY_VIEW
    # A view is computed by its readers, so the lag is theirs.
    backlog, behind = ("–", False) if is_view else _backlog(project, flows, history)
    tallies = history.rules.get(entry.name, {})
    return DatasetView(
        entry.name,
        str(entry.kind).replace("_", " "),
        entry.comment or "",
        tuple(flow.name for flow in flows),
        state.lower() if state else "view" if is_view else "new",
        next((result.error for result in results if result.error), None),
        freshness,
        backlog,
        behind,
        points([batch.output_rows for batch in batches[-_SPARKS:]]),
        tuple(
            Rule(rule.name, rule.constraint, str(rule.action), tallies.get(rule.name, RuleTally()))
            for rule in entry.expectations
        ),
        sum(batch.quarantined_rows for batch in batches),
        sum(batch.dropped_rows for batch in batches),
        tuple(entry_health for entry_health in health if entry_health.dataset == entry.name),
        next((_refresh(result, batches) for result in results if result.technique), None),
        batches[-1].at if batches else None,
    )


def _refresh(result: FlowResult, batches: Sequence[Batch]) -> Refresh:
    wrote = result.technique != "NO_OP" and bool(batches)
    return Refresh(result.technique or "", batches[-1].output_rows if wrote else 0, result.reason or "")


def _backlog(project: PipelineProject, flows: Sequence[FlowEntry], history: History) -> tuple[str, bool]:
    """The lag over a dataset's flows in words, and whether there is any.

    Tables are measured now. Brokers and folders may take long to answer: for them the last batch's record is used.
    """
    remarks, behind = [], False
    for flow in flows:
        if all(source.kind in _TABLES for source in flow.sources) and flow.sources:
            text, late = _measured(flow_lag(project, flow, connect=_nobody))
        else:
            text, late = _remembered(flow, history)
        behind = behind or late
        if text and text not in remarks:
            remarks.append(text)
    return ", ".join(remarks) or "–", behind


def _measured(lag: FlowLag) -> tuple[str, bool]:
    backlog = lag.backlog
    if backlog.unknown:
        return "not known", False
    if not backlog.moved:
        return "none", False
    size = (
        f"{rows(backlog.records)} rows"
        if backlog.records is not None
        else f"{backlog.versions or 'some'} versions"
    )
    return f"{size}, {age(backlog.seconds)}" if backlog.seconds else size, True


def _remembered(flow: FlowEntry, history: History) -> tuple[str, bool]:
    batches = history.batches.get(flow.name, ())
    left = next((batch.backlog for batch in reversed(batches) if batch.backlog is not None), None)
    if left is None:
        return "", False
    return (f"{rows(left)} rows at the last batch" if left else "none at the last batch"), left > 0


def _nobody(*_: Any, **__: Any) -> Any:
    raise AssertionError("no broker is asked for a page")
