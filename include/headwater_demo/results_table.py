"""The table that the demo ends with: what each update did, by dataset."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from headwater.event_log.reader import FlowResult
from headwater_demo.sample_data import Counts

# What arrives goes through these tables first; each has to read exactly what was sent.
_LANDS_IN = {"orders_bronze": "messages", "clicks_bronze": "clicks", "customers_bronze": "customers"}


def results_table(updates: Sequence[Sequence[FlowResult]]) -> Table:
    """Return a table with one section an update and one row a flow."""
    table = Table(title="Rows by update and dataset", box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("update", no_wrap=True)
    table.add_column("dataset", no_wrap=True)
    for heading in ("rows in", "out", "dropped", "backlog\nleft", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, results in enumerate(updates, start=1):
        for place, result in enumerate(results):
            table.add_row(str(number) if place == 0 else "", *_cells(result))
        table.add_section()
    return table


def unread(produced: Counts, results: Sequence[FlowResult]) -> list[str]:
    """Compare what was sent with what the update read.

    Returns:
        A sentence for each table that read another number of rows than were sent; empty if all is as it should be.

    """
    wrong = []
    for dataset, kind in _LANDS_IN.items():
        sent = getattr(produced, kind)
        read = sum(result.input_rows for result in results if _last_part(result.dataset) == dataset)
        if read != sent:
            wrong.append(f"{dataset} read {read} rows, and {sent} had been sent")
    return wrong


def _cells(result: FlowResult) -> list[str]:
    dataset = _last_part(result.dataset)
    name = dataset if result.flow in (dataset, result.dataset) else f"{dataset} ({_last_part(result.flow)})"
    numbers = (result.input_rows, result.output_rows, result.dropped_rows, result.backlog_records)
    seconds = "" if result.seconds is None else f"{result.seconds:.1f}"
    return [name, *("" if number is None else f"{number:,}" for number in numbers), seconds]


def _last_part(name: str | None) -> str:
    return (name or "").rpartition(".")[2]
