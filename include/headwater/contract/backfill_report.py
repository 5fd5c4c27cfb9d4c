"""The result of a backfill, or of its dry run, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import size
from headwater.contract.report import FlowRows

_STYLES = {"COMPLETED": "green", "PLANNED": "cyan", "DONE_BEFORE": "yellow"}


@dataclass(frozen=True)
class TableBackfill(FlowRows):
    """One table, or one of its flows where each is written by itself.

    ``state``: COMPLETED, PLANNED (dry run) or DONE_BEFORE. ``input_rows``: what the query gave for the range;
    ``replaced_rows``: what left the table for it. ``source_bytes``: of the files that are read, None where they are no
    files; ``replaced_bytes``: of the files that are rewritten; ``output_bytes``: about, by the table's rows so far.
    """

    mode: str = ""
    replaced_rows: int = 0
    source_bytes: int | None = None
    replaced_bytes: int = 0
    output_bytes: int = 0
    version: int | None = None
    note: str = ""


@dataclass(frozen=True)
class BackfillReport:
    """A backfill, table by table. ``chosen``: the range as JSON values, and in words."""

    backfill_id: str
    state: str
    chosen: Mapping[str, Any] | None
    words: str
    tables: tuple[TableBackfill, ...]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values; ``flows`` as in the report of an update."""
        return {
            "backfill_id": self.backfill_id,
            "state": self.state,
            "range": self.chosen,
            "flows": [asdict(table) for table in self.tables],
            "seconds": round(self.seconds, 3),
        }

    def show(self, *, as_json: bool) -> None:
        """Print it to standard output: one line of JSON, or a table."""
        if as_json:
            print_json(self.as_dict())
            return
        planned = self.state == "PLANNED"
        will = "would be " if planned else ""
        columns = ("table", "flow", "mode", "state", "rows in range", f"{will}written", "dropped", "quarantined", f"{will}replaced")  # fmt: skip
        costs = ("source", "files rewritten", "about to write") if planned else ("version",)
        print_table(
            f"Backfill {self.backfill_id}: {self.words}",
            (*columns, *costs),
            [(*_counts(table), *(_cost(table) if planned else (table.version,))) for table in self.tables],
            row_styles=[_STYLES.get(table.state, "") for table in self.tables],
        )
        for table in self.tables:
            if table.note:
                print(f"{table.dataset}: {table.note}")
        ending = "nothing was written" if planned else "the live stream and its checkpoint were not touched"
        print(f"{self.state} in {self.seconds:.1f} s: {ending}")


def lines_of(report: Mapping[str, Any]) -> list[str]:
    """A report's JSON values as lines for a log."""
    planned = report.get("state") == "PLANNED"
    will = "would be " if planned else ""
    lines = [str(one["message"]) for one in report.get("history") or ()]
    for flow in report.get("flows") or ():
        line = (
            f"{flow['dataset']} ({flow['flow']}): {flow['state']}, {flow['input_rows']} rows in range, {flow['output_rows']} {will}written, "
            f"{flow['dropped_rows']} dropped, {flow['quarantined_rows']} quarantined"
        )
        if "replaced_rows" in flow:
            line += f", {flow['replaced_rows']} {will}replaced"
        if planned:
            source = size(flow.get("source_bytes")) or "unknown"
            line += f"; source {source}, files rewritten {size(flow['replaced_bytes'])}, about {size(flow['output_bytes'])} to write"
        lines.append(line + (f". {flow['note']}" if flow.get("note") else ""))
    return [*lines, *(["Nothing was written."] if planned else [])]


def _counts(table: TableBackfill) -> tuple[object, ...]:
    return table.dataset, table.flow, table.mode, table.state, *table.counts, table.replaced_rows


def _cost(table: TableBackfill) -> tuple[object, ...]:
    return size(table.source_bytes) or "-", size(table.replaced_bytes), size(table.output_bytes)
