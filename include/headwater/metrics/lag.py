"""How far each flow of a pipeline is behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import redact_text
from headwater.graph.manifest import FlowEntry, Manifest, SourceEntry
from headwater.graph.pipeline_project import PipelineProject
from headwater.kafka.login import PROTOCOL, broker_connection
from headwater.kafka.offsets import Connect
from headwater.metrics.backlog import Backlog, total
from headwater.metrics.source_position import source_backlog

_PLACEHOLDER = re.compile(r"\$\{([^{}]+)\}")


@dataclass(frozen=True)
class SourceLag:
    """The backlog of one source of a flow."""

    source: SourceEntry
    backlog: Backlog

    @property
    def name(self) -> str:
        """What the source is called, for people."""
        entry = self.source
        return redact_text(entry.name or entry.path or entry.location or entry.format or str(entry.kind))


@dataclass(frozen=True)
class FlowLag:
    """The backlog of a flow over all its sources."""

    flow: str
    dataset: str
    streaming: bool
    backlog: Backlog
    sources: tuple[SourceLag, ...]

    def as_dict(self) -> dict[str, Any]:
        """The lag as JSON values."""
        parts = [
            {"source": part.name, "kind": str(part.source.kind), **part.backlog.as_dict()}
            for part in self.sources
        ]
        total_backlog = self.backlog.as_dict()
        return {
            "flow": self.flow,
            "dataset": self.dataset,
            "streaming": self.streaming,
            **total_backlog,
            "sources": parts,
        }


@dataclass(frozen=True)
class LagBreach:
    """A flow that is over a limit, or whose lag is not known (``value`` is then None)."""

    flow: str
    dataset: str
    measure: str
    value: float | None
    limit: float
    reason: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.flow}: {self.measure} of lag not known ({self.reason}), limit {self.limit:g}"
        return f"{self.flow}: {self.value:,.0f} {self.measure} of lag, limit {self.limit:g}"


def flow_lag(project: PipelineProject, flow: FlowEntry, *, connect: Connect | None = None) -> FlowLag:
    """The lag of one flow. ``connect``: opens a Kafka broker by its servers; by default as the spec says."""
    flow = with_configuration(flow, project.configuration)
    checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
    if flow.once:
        return FlowLag(flow.name, flow.target, flow.streaming, _of_once(checkpoint), ())
    parts = tuple(
        SourceLag(
            source,
            source_backlog(
                flow,
                source,
                checkpoint,
                project.warehouse,
                connect=connect or broker_connection(project, source.options.get(PROTOCOL, "")),
                store=project.object_store,
            ),
        )
        for source in flow.sources
        # A stream sees a joined table as it is at each batch, so only streaming sources have a lag.
        if source.streaming or not flow.streaming
    )
    return FlowLag(flow.name, flow.target, flow.streaming, total(part.backlog for part in parts), parts)


def _of_once(checkpoint: FlowCheckpoint) -> Backlog:
    try:
        state = checkpoint.read_state()
    except HeadwaterError as error:
        return Backlog.because(f"{error.what} ({error.where})")
    return Backlog(0, 0, 0, 0, 0.0, moved=False) if state and state.completed else Backlog(moved=True)


def with_configuration(flow: FlowEntry, configuration: Mapping[str, str]) -> FlowEntry:
    """The flow with ``${key}`` in its sources replaced: the committed manifest names values by their keys."""

    def value(match: re.Match[str]) -> str:
        return configuration.get(match[1], match[0])

    def resolved(source: SourceEntry) -> SourceEntry:
        options = {key: _PLACEHOLDER.sub(value, text) for key, text in source.options.items()}
        path = _PLACEHOLDER.sub(value, source.path) if source.path else source.path
        return source.model_copy(update={"path": path, "options": options})

    return flow.model_copy(update={"sources": tuple(map(resolved, flow.sources))})


def pipeline_lag(
    project: PipelineProject, manifest: Manifest, *, connect: Connect | None = None
) -> list[FlowLag]:
    """The lag of every flow that an update runs, in the manifest's order."""
    return [flow_lag(project, flow, connect=connect) for flow in manifest.output_flows]


def over_limit(
    lags: list[FlowLag],
    *,
    records: float | None = None,
    seconds: float | None = None,
    bytes: float | None = None,  # noqa: A002 - named as the measure is
    files: float | None = None,
    versions: float | None = None,
) -> list[LagBreach]:
    """The flows over a given limit. One whose lag can't be known counts as over: silence would hide trouble."""
    limits = {"records": records, "seconds": seconds, "bytes": bytes, "files": files, "versions": versions}
    breaches = []
    for lag in lags:
        for measure, limit in limits.items():
            value = getattr(lag.backlog, measure)
            if limit is None or (value is None and not lag.backlog.unknown):
                continue
            if value is None or value > limit:
                reason = lag.backlog.unknown or ""
                breaches.append(LagBreach(lag.flow, lag.dataset, measure, value, limit, reason))
    return breaches
