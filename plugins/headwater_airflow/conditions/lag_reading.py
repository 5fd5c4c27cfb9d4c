"""A pipeline's lag compared with limits, for the sensor and the check. Every call may block on files and brokers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from io import StringIO
from typing import Any

from headwater.errors import InvalidSpec
from headwater.metrics.lag import FlowLag, LagBreach, flow_lag, over_limit
from headwater_airflow.conditions.condition import observed_manifest
from headwater_airflow.roots import pipeline_project

_TABLE_COLUMNS = 140
_MEASURES = ("records", "bytes", "files", "versions", "seconds")


@dataclass(frozen=True)
class LagLimits:
    """The allowed lag by measure; None: not checked."""

    seconds: float | None = None
    records: float | None = None
    bytes: float | None = None
    files: float | None = None
    versions: float | None = None

    @property
    def by_measure(self) -> dict[str, float]:
        """The limits that are set, by measure."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class LagReading:
    """The lag of some flows, and which limits they break. ``missing``: why there are none, where there should be."""

    lags: tuple[FlowLag, ...]
    limits: LagLimits
    breaches: tuple[LagBreach, ...]
    missing: str | None = None

    @property
    def within_limits(self) -> bool:
        """Whether every flow is known to be at or under every limit."""
        return not self.breaches and self.missing is None

    def summary(self) -> str:
        """The reading in a sentence."""
        if self.missing:
            return self.missing
        if self.breaches:
            return "; ".join(str(breach) for breach in self.breaches)
        return f"All {len(self.lags)} flows are within their limits."

    def as_table(self) -> str:
        """Flow, lag and limit in lines and columns, worst first."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table("flow", "table", box=SIMPLE_HEAD, title="Lag")
        measures = [m for m in _MEASURES if m in ("records", "seconds") or m in self.limits.by_measure]
        for measure in measures:
            limit = self.limits.by_measure.get(measure)
            table.add_column(measure if limit is None else f"{measure} (limit {limit:g})", justify="right")
        table.add_column("", justify="left")
        broken = {(breach.flow, breach.dataset) for breach in self.breaches}
        for lag in sorted(self.lags, key=lambda lag: (lag.flow, lag.dataset) not in broken):
            verdict = "over the limit" if (lag.flow, lag.dataset) in broken else ""
            numbers = (_number(getattr(lag.backlog, measure)) for measure in measures)
            table.add_row(lag.flow, lag.dataset, *numbers, lag.backlog.unknown or verdict)
        text = StringIO()
        Console(file=text, width=_TABLE_COLUMNS, color_system=None).print(table)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def as_dict(self) -> dict[str, Any]:
        """The reading as JSON values."""
        return {
            "flows": [lag.as_dict() for lag in self.lags],
            "breaches": [asdict(breach) for breach in self.breaches],
            "limits": self.limits.by_measure,
        }


def read_lag(pipeline: str, dataset: str | None, limits: LagLimits) -> LagReading:
    """Measure how far a pipeline, or one of its tables, is behind its sources.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only the flows into this one.
        limits: what is allowed.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline or table.

    """
    project = pipeline_project(pipeline)
    manifest = observed_manifest(project)
    if manifest is None:
        return LagReading((), limits, (), f"{pipeline} has not run yet, so its lag is not known.")
    flows = [flow for flow in manifest.output_flows if dataset in (None, flow.target)]
    if dataset is not None and not flows:
        tables = ", ".join(entry.name for entry in manifest.tables)
        raise InvalidSpec(
            f"{pipeline} has no table {dataset!r}.", where=project.spec_file, remedy=f"It has: {tables}."
        )
    lags = [flow_lag(project, flow) for flow in flows]
    breaches = over_limit(lags, **limits.by_measure)
    return LagReading(tuple(lags), limits, tuple(breaches))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
