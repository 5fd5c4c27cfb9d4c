"""What the demo shows: the table, the comparison with what was sent, the end of a log, the steps."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from headwater.event_log.reader import FlowResult
from headwater_demo.results_table import results_table, unread
from headwater_demo.sample_data import Counts
from headwater_demo.steps import Steps
from headwater_demo.task_log import readable_tail

SENT = Counts(messages=10, clicks=7, customers=2)


def result(dataset: str, rows: int, flow: str = "") -> FlowResult:
    """Return a completed flow that read and wrote ``rows`` rows."""
    return FlowResult(
        "u", dataset, flow or dataset, "COMPLETED", rows, rows, 1234, backlog_records=0, seconds=1.25
    )


def right_results() -> list[FlowResult]:
    """Return an update that read exactly what was sent; the clicks by two flows."""
    return [
        result("shop.orders_bronze", 10),
        result("shop.clicks_bronze", 4, "web_clicks"),
        result("shop.clicks_bronze", 3, "app_clicks"),
        result("shop.customers_bronze", 2),
    ]


def printed(thing: object) -> str:
    """Return what rich prints on a wide, colourless console."""
    console = Console(file=StringIO(), width=120)
    console.print(thing)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_exactly_what_was_sent():
    """Nothing is said when every table read what was sent to it."""
    assert unread(SENT, right_results()) == []


@pytest.mark.parametrize("rows", [9, 11])
def test_too_few_or_too_many_rows_are_told(rows: int):
    """A table that read fewer or more rows is named with both numbers."""
    results = [result("shop.orders_bronze", rows), *right_results()[1:]]
    assert unread(SENT, results) == [f"orders_bronze read {rows} rows, and 10 had been sent"]


def test_the_table_has_a_row_for_each_flow():
    """Update, dataset, rows in and out, dropped, backlog and seconds are there; unknown numbers are left empty."""
    unknown = FlowResult("u", "shop.gold", "gold", "COMPLETED", 3, 3)
    text = printed(results_table([right_results(), [unknown]]))
    for expected in ("orders_bronze", "clicks_bronze (web_clicks)", "1,234", "1.2", "gold"):
        assert expected in text
    assert "None" not in text


def test_the_end_of_a_log_is_readable(tmp_path: Path):
    """The JSON lines of a task's log become plain ones, errors included; other lines stay as they are."""
    log = tmp_path / "attempt=1.log"
    error = {
        "event": "Task failed",
        "error_detail": [{"exc_type": "ValueError", "exc_value": "no such table"}],
    }
    lines = [
        json.dumps({"event": "first"}),
        json.dumps({"event": "second"}),
        json.dumps(error),
        "not json",
        "3",
    ]
    log.write_text("\n".join(lines))
    assert readable_tail(log, lines=4) == "second\nTask failed ValueError: no such table\nnot json\n3"


def test_a_log_that_is_not_there(tmp_path: Path):
    """A task that never started has no log, and that is said."""
    assert "no log at" in readable_tail(tmp_path / "none.log")


def test_steps_are_plain_lines_off_a_terminal():
    """Each finished step is one line with its detail; a failed one prints no mark of success."""
    console = Console(file=StringIO(), width=120)
    with Steps(console) as steps:
        with steps.step("Kafka broker") as step:
            step.say("[127.0.0.1]:9092")
        with pytest.raises(ValueError, match="broken"), steps.step("Airflow"):
            raise ValueError("broken")
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "✓ Kafka broker" in text
    assert "[127.0.0.1]:9092" in text
    assert "✓ Airflow" not in text
