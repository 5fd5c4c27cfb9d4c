"""What the lines of ``verify`` are decided from: the facts of advice, and how the pipeline is operated.

Decision 0166.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headwater.advice.facts import FlowFact, PipelineFacts
from headwater.advice.finding import Advice
from headwater.metrics.checkpoint_health import Health


class Verdict(StrEnum):
    """How a line ends. UNKNOWN: what would say so is not there (yet)."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Line:
    """One criterion or practice. ``evidence``: what says so, or what is missing."""

    group: str
    number: int
    title: str
    verdict: Verdict
    evidence: str

    def as_dict(self) -> dict[str, Any]:
        """The line as JSON values."""
        return {
            "group": self.group,
            "number": self.number,
            "title": self.title,
            "verdict": str(self.verdict),
            "evidence": self.evidence,
        }


@dataclass(frozen=True)
class LagFact:
    """How far a flow is behind now. ``unknown``: why that is not known; empty where it is."""

    flow: str
    records: int | None = None
    seconds: float | None = None
    unknown: str = ""


@dataclass(frozen=True)
class Operation:
    """How the pipeline is run and watched, from ``pipeline.yml`` and the DAG files.

    ``limits``: names of the alerts' limits that are set. ``check_dag``: None where there is no folder of DAGs; ``notified``: whether it has
    notifiers. ``tests``: files of tests that name the pipeline; None where there is nowhere to look.
    """

    retries: int = 2
    checked: bool = True
    limits: tuple[str, ...] = ()
    lag_seconds: float | None = None
    lag_records: float | None = None
    check_dag: bool | None = None
    notified: bool = False
    tests: tuple[str, ...] | None = None
    keep_days: float = 30.0


@dataclass(frozen=True)
class ProductionFacts:
    """Everything. ``checkpoints``: flow, health and problem. ``updates``: states of the newest, oldest first.

    ``old_epochs``: epochs that should have gone by now. ``schema_error``: of the newest update, where a schema stopped it.
    ``first_tables``: streaming tables that read from outside of the pipeline. ``quarantined``: those of them whose bad rows are kept,
    there or in what reads them. ``comments``: of tables, None where there is none.
    """

    pipeline: PipelineFacts
    findings: tuple[Advice, ...] = ()
    checkpoints: tuple[tuple[str, Health, str], ...] = ()
    updates: tuple[str, ...] = ()
    lags: tuple[LagFact, ...] = ()
    operation: Operation = Operation()
    old_epochs: tuple[str, ...] = ()
    schema_error: str = ""
    first_tables: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    comments: dict[str, str | None] = field(default_factory=dict)

    @property
    def stateful(self) -> tuple[FlowFact, ...]:
        """The flows that keep state."""
        return tuple(
            f for f in self.pipeline.flows if f.state_plan or any(batch.states for batch in f.batches)
        )

    def findings_of(self, *codes: str) -> tuple[Advice, ...]:
        """The findings of these codes."""
        return tuple(finding for finding in self.findings if finding.code in codes)
