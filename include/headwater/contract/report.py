"""The result of an update, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from headwater.contract.driver_report import ReportedError
from headwater.contract.printing import print_json, print_table
from headwater.errors import RefusedForSafety
from headwater.event_log.flow_result import FlowResult

_STYLES = {"COMPLETED": "green", "FAILED": "bold red", "SKIPPED": "yellow", "STOPPED": "yellow"}


@dataclass(frozen=True)
class FlowRows:
    """What a flow read and wrote, in an update or a backfill."""

    flow: str
    dataset: str
    state: str
    input_rows: int = 0
    output_rows: int = 0
    dropped_rows: int = 0
    quarantined_rows: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of rows, as cells of a table."""
        return self.input_rows, self.output_rows, self.dropped_rows, self.quarantined_rows


@dataclass(frozen=True)
class FlowReport(FlowRows):
    """A flow in an update. ``state`` as in the event log; rows are sums over its batches."""

    batches: int = 0
    error: ReportedError | None = None

    @classmethod
    def of(cls, result: FlowResult) -> FlowReport:
        """The report of what the event log says."""
        fields = {name: getattr(result, name) for name in cls.__dataclass_fields__}
        error = ReportedError(condition="FLOW_FAILED", message=result.error) if result.error else None
        return cls(**{**fields, "dataset": result.dataset or "", "error": error})

    def as_dict(self) -> dict[str, Any]:
        """The flow as JSON values."""
        return {**asdict(self), "error": self.error.model_dump() if self.error else None}


@dataclass(frozen=True)
class RunReport:
    """An update: ``state`` is COMPLETED, FAILED or CANCELED; ``message`` says why, where that helps.

    ``refused``: every flow that failed was refused for safety; a retry changes nothing until someone decides.
    ``error``: what ended the update itself, where that was not a flow's error.
    """

    update_id: str
    state: str
    flows: tuple[FlowReport, ...]
    seconds: float
    message: str = ""
    refused: bool = False
    error: ReportedError | None = None

    @classmethod
    def of(cls, update_id: str, state: str, results: Iterable[FlowResult], seconds: float) -> RunReport:
        """The report from what the event log says of each flow."""
        return cls(update_id, state, tuple(FlowReport.of(result) for result in results), seconds)

    @property
    def exit_code(self) -> int:
        """0 where all went well, 3 where only refusals stood in the way, else 1."""
        if self.state == "COMPLETED":
            return 0
        return RefusedForSafety.exit_code if self.refused else 1

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            **asdict(self),
            "flows": [flow.as_dict() for flow in self.flows],
            "error": self.error.model_dump() if self.error else None,
            "seconds": round(self.seconds, 3),
        }

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    def show(self, *, as_json: bool) -> None:
        """Print it to standard output: one line of JSON, or a table."""
        if as_json:
            print_json(self.as_dict())
            return
        print_table(
            f"Update {self.update_id}",
            ("dataset", "flow", "state", "batches", "rows in", "rows out", "dropped", "quarantined", "error"),
            [
                (
                    flow.dataset,
                    flow.flow,
                    flow.state,
                    flow.batches,
                    *flow.counts,
                    flow.error.message.partition("\n")[0] if flow.error else "",
                )
                for flow in self.flows
            ],
            row_styles=[_STYLES.get(flow.state, "") for flow in self.flows],
        )
        print(f"{self.state} in {self.seconds:.1f} s" + (f": {self.message}" if self.message else ""))
