"""What a pipeline's folders say at this moment, in Prometheus' text format. Reads logs and checkpoints; starts no JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, ManifestNotFound
from headwater.event_log import reader
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.quality import rule_histories
from headwater.event_log.redaction import quoted
from headwater.event_log.stream_measures import stream_measures
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.freshness import pipeline_freshness
from headwater.metrics.lag import pipeline_lag
from headwater.storage.listing import looked_over
from headwater.telemetry.families import FAMILIES

if TYPE_CHECKING:
    from prometheus_client.metrics_core import GaugeMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)
_ROW_KINDS = ("input", "output", "dropped", "quarantined")
_LAG = ("records", "bytes", "files", "versions", "seconds")
_STATE = {
    "state_rows": "headwater_flow_state_rows",
    "state_bytes": "headwater_flow_state_bytes",
    "watermark_lag_seconds": "headwater_flow_watermark_lag_seconds",
}


@dataclass(frozen=True)
class Sample:
    """A value of a family; ``labels`` in the family's order."""

    family: str
    labels: tuple[str, ...]
    value: float

    def as_dict(self) -> dict[str, Any]:
        """The sample as JSON values."""
        names = FAMILIES[self.family][1]
        return {
            "name": self.family,
            "labels": dict(zip(names, self.labels, strict=True)),
            "value": self.value,
        }


@dataclass
class _Figures:
    """The samples so far."""

    samples: list[Sample] = field(default_factory=list)

    def add(self, family: str, labels: Iterable[str | None], value: float | None) -> None:
        """A value; None where there is nothing to say."""
        if value is not None:
            self.samples.append(Sample(family, tuple(label or "" for label in labels), float(value)))


def samples(projects: Iterable[PipelineProject]) -> list[Sample]:
    """The figures of pipelines. One that can't be read says so by ``headwater_pipeline_readable``.

    Labels are the pipeline's id, and names of datasets, flows and rules.
    """
    figures = _Figures()
    for project in projects:
        readable = 1
        try:
            with looked_over(project.state_folder / "checkpoints"):
                _read(project, figures)
        except Exception as error:  # records of another version, too: the figures of all others are there
            words = str(error) if isinstance(error, HeadwaterError | OSError) else quoted(error)
            _log.warning("The figures of %s can't be read: %s", project.pipeline_id, words)
            readable = 0
        figures.add("headwater_pipeline_readable", (project.pipeline_id,), readable)
    return figures.samples


def as_text(values: Iterable[Sample]) -> str:
    """Samples in Prometheus' text format."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(tuple(values)))
    return generate_latest(registry).decode()


@dataclass(frozen=True)
class _Collected:
    """Samples as a registry of the Prometheus client takes them."""

    samples: tuple[Sample, ...]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        from prometheus_client.metrics_core import GaugeMetricFamily

        for name, (meaning, labels) in FAMILIES.items():
            family = GaugeMetricFamily(name, meaning, labels=labels)
            for sample in self.samples:
                if sample.family == name:
                    family.add_metric(sample.labels, sample.value)
            if family.samples:
                yield family


def _read(project: PipelineProject, figures: _Figures) -> None:
    _of_update(project, figures)
    _of_streams(project, figures)
    _of_rules(project, figures)
    with suppress(ManifestNotFound):  # it has not run yet
        manifest = stored_manifest(project)
        _of_lag(project, manifest, figures)
        _of_datasets(project, manifest, figures)


def _of_update(project: PipelineProject, figures: _Figures) -> None:
    pipeline, latest = project.pipeline_id, reader.latest_update(project.state_folder)
    if latest is None:
        return
    for state in UpdateState:
        figures.add("headwater_last_update_state", (pipeline, str(state)), float(state == latest.state))
    figures.add("headwater_last_update_started_timestamp_seconds", (pipeline,), latest.started.timestamp())
    figures.add("headwater_last_update_duration_seconds", (pipeline,), latest.seconds)
    for result in reader.flow_results(project.state_folder, update_id=latest.update_id):
        about = (pipeline, result.dataset, result.flow)
        figures.add("headwater_last_update_flow_failed", about, float(result.state == FlowStatus.FAILED))
        for kind in _ROW_KINDS:
            rows: int = getattr(result, f"{kind}_rows")
            figures.add("headwater_last_update_flow_rows", (*about, kind), rows)


def _of_streams(project: PipelineProject, figures: _Figures) -> None:
    for measured in stream_measures(project.state_folder):
        for measure, family in _STATE.items():
            value: Any = getattr(measured, measure)
            figures.add(family, (project.pipeline_id, measured.dataset, measured.flow), value)


def _of_rules(project: PipelineProject, figures: _Figures) -> None:
    histories, _ = rule_histories(project.state_folder, updates=1)
    for history in histories:
        about = (project.pipeline_id, history.dataset, history.rule)
        figures.add("headwater_rule_rows", (*about, "passed"), history.passed)
        figures.add("headwater_rule_rows", (*about, "failed"), history.failed)


def _of_lag(project: PipelineProject, manifest: Manifest, figures: _Figures) -> None:
    for lag in pipeline_lag(project, manifest):
        about = (project.pipeline_id, lag.dataset, lag.flow)
        figures.add("headwater_flow_lag_known", about, float(lag.backlog.unknown is None))
        for measure in _LAG:
            value: Any = getattr(lag.backlog, measure)
            figures.add(f"headwater_flow_lag_{measure}", about, value)


def _of_datasets(project: PipelineProject, manifest: Manifest, figures: _Figures) -> None:
    for entry in pipeline_freshness(project, manifest):
        about = (project.pipeline_id, entry.dataset)
        figures.add("headwater_dataset_age_seconds", about, entry.seconds)
        figures.add("headwater_dataset_version", about, entry.version)
