"""What ``verify`` decides from, read from storage, the warehouse, ``pipeline.yml`` and the files around it. No JVM is started."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater.checkpoints.listing import list_checkpoints
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.source import SourceKind
from headwater.event_log.reader import flow_results, updates
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.checkpoint_health import pipeline_health
from headwater.metrics.lag import pipeline_lag
from headwater.verification.facts import LagFact, Operation, ProductionFacts

_UPDATES = 100
_DAY = 86400.0
# How far above the pipeline's folder the folders of DAGs and tests are looked for.
_ABOVE = 4


def production_facts(project: PipelineProject, manifest: Manifest) -> ProductionFacts:
    """Read everything that the lines look at.

    Raises:
        EventLogUnreadable: the event log is damaged.
    """
    facts = pipeline_facts(project, manifest)
    health = pipeline_health(project, manifest)
    lags = pipeline_lag(project, manifest)
    operation = _operation(project)
    first = [entry for entry in manifest.tables if _reads_outside(manifest, entry)]
    return ProductionFacts(
        facts,
        tuple(advise(facts)),
        tuple((entry.flow, entry.health, entry.problem or "") for entry in health),
        tuple(update.state for update in updates(project.state_folder, _UPDATES)),
        tuple(
            LagFact(lag.flow, lag.backlog.records, lag.backlog.seconds, lag.backlog.unknown or "") for lag in lags if lag.streaming
        ),
        operation,
        _old_epochs(project, operation.keep_days),
        _schema_error(project),
        tuple(entry.name for entry in first),
        tuple(entry.name for entry in first if _keeps_bad_rows(manifest, entry.name)),
        {entry.name: entry.comment for entry in manifest.tables},
    )  # fmt: skip


def _operation(project: PipelineProject) -> Operation:
    airflow, alerts = project.spec.airflow, project.spec.airflow.alerts
    limits = [
        name
        for name, value in alerts.model_dump().items()
        if name != "checkpoint_health" and value not in (None, False, {})
    ]
    dags = _folder(project, "dags")
    of_all = "checks" in airflow.dags
    made = (
        [
            text
            for text in _texts(dags)
            if _names(text, "PipelineCheckDag", project.folder.name) or (of_all and "pipeline_dags" in text)
        ]
        if dags
        else []
    )
    notified = any("alert" in spec.when for spec in airflow.notifiers)
    tests = _folder(project, "tests")
    named = re.compile(rf"\b{re.escape(project.folder.name)}\b")
    naming = (
        [path.name for path in sorted(tests.rglob("test_*.py")) if named.search(_text(path))]
        if tests
        else None
    )
    return Operation(
        project.spec.update_retries,
        airflow.check_schedule is not None,
        tuple(limits),
        alerts.lag_seconds,
        alerts.lag_records,
        bool(made) if dags else None,
        notified or any("notifiers" in text for text in made),
        None if naming is None else tuple(naming),
        project.spec.maintenance.keep.total_seconds() / _DAY,
    )


def _folder(project: PipelineProject, name: str) -> Path | None:
    """The nearest folder of this name in the pipeline's folder or above it."""
    places = [project.folder, *list(project.folder.resolve().parents)[:_ABOVE]]
    return next((place / name for place in places if (place / name).is_dir()), None)


def _texts(folder: Path) -> list[str]:
    return [_text(path) for path in sorted(folder.rglob("*.py"))]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _names(text: str, dag: str, pipeline: str) -> bool:
    return re.search(rf"{dag}\(\s*(pipeline\s*=\s*)?[\"']{re.escape(pipeline)}[\"']", text) is not None


def _old_epochs(project: PipelineProject, keep_days: float) -> tuple[str, ...]:
    entries = list_checkpoints(project.state_folder)
    return tuple(
        f"{entry.flow}, epoch {entry.epoch}"
        for entry in entries
        if not entry.live and entry.age is not None and entry.age > keep_days * _DAY
    )


def _schema_error(project: PipelineProject) -> str:
    """The error of the newest update, where it is about columns."""
    errors = [result.error for result in flow_results(project.state_folder) if result.error]
    return next(
        (error.partition("\n")[0] for error in errors if re.search(r"schema|column", error, re.IGNORECASE)),
        "",
    )


def _reads_outside(manifest: Manifest, entry: DatasetEntry) -> bool:
    if entry.kind is not DatasetKind.STREAMING_TABLE:
        return False
    sources = [source for flow in manifest.flows_into(entry.name) for source in flow.sources]
    return any(source.streaming and source.kind is not SourceKind.DATASET for source in sources)


def _keeps_bad_rows(manifest: Manifest, dataset: str) -> bool:
    """Whether a rule that quarantines stands on a table, or on one that reads it directly."""
    readers = {flow.target for flow in manifest.flows if dataset in flow.inputs}
    rules = [
        rule
        for entry in manifest.datasets
        if entry.name in {dataset, *readers}
        for rule in entry.expectations
    ]
    return any(rule.action is ViolationAction.QUARANTINE for rule in rules)
