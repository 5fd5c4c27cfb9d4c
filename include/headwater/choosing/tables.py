"""The tables of docs/choosing.md, from the same data and function that answer ``advise --choose``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headwater.choosing.choice import choose
from headwater.choosing.requirements import QUESTIONS, Processing, Requirements, Source


@dataclass(frozen=True)
class Scenario:
    """A case, and what it requires."""

    text: str
    needs: Requirements


_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
SCENARIOS = (
    Scenario("Daily sales report from last month", Requirements(Source.FINITE, Processing.AGGREGATE, _DAY)),
    Scenario("Real-time fraud detection on transactions", Requirements(Source.TOPIC, Processing.ROWS, timedelta(seconds=5))),
    Scenario("Hourly ETL from a static CSV dump", Requirements(Source.FINITE, Processing.ROWS, _HOUR)),
    Scenario(
        "Continuous clickstream analytics for dashboards",
        Requirements(Source.TOPIC, Processing.AGGREGATE, timedelta(seconds=30)),
    ),
    Scenario(
        "Incremental aggregation from an append-only Delta table, within minutes",
        Requirements(Source.APPENDED_TABLE, Processing.AGGREGATE, timedelta(minutes=5)),
    ),
    Scenario("The same, once a day", Requirements(Source.APPENDED_TABLE, Processing.AGGREGATE, _DAY)),
    Scenario("Change events of a database", Requirements(Source.CHANGE_EVENTS, Processing.ROWS, timedelta(minutes=1))),
)  # fmt: skip


@dataclass(frozen=True)
class TriggerRow:
    """A trigger of Spark, its latency, what it is for, and how a pipeline says it."""

    spark: str
    latency: str
    use: str
    here: str


TRIGGERS = (
    TriggerRow('processingTime="30s"', "about 30 s", "the usual stream", "trigger: {processing_time: 30 seconds, run_for: 30 minutes}"),
    TriggerRow('processingTime="5m"', "about 5 min", "nearly as soon, at lower cost", "trigger: {processing_time: 5 minutes, run_for: 30 minutes}"),
    TriggerRow("once=True", "that of the schedule", "tests, one run", "trigger: once"),
    TriggerRow("availableNow=True", "that of the schedule", "catching up; updates by a schedule", "trigger: available_now"),
    TriggerRow('continuous="1s"', "below 1 s in Spark", "Spark's own can't write Delta tables; here streams that keep running, 1 s or more", "trigger: continuous"),
)  # fmt: skip


def generated_tables() -> dict[str, str]:
    """Each table of the page by its name, as Markdown."""
    questions = [(f"`--{q.option}`", q.text, q.answers.replace("|", "/"), q.setting) for q in QUESTIONS]
    triggers = [(f"`{row.spark}`", row.latency, row.use, f"`{row.here}`") for row in TRIGGERS]
    scenarios = []
    for scenario in SCENARIOS:
        choice = choose(scenario.needs)
        trigger = choice.trigger.replace("\n", "; ")
        watermark = f"`{choice.watermark}`" if choice.watermark else "none"
        scenarios.append(
            (scenario.text, choice.workload, choice.table, f"`{trigger}`", choice.output_mode, watermark)
        )
    return {
        "scenarios": _table(("Case", "Workload", "Table", "Trigger", "Output mode", "Watermark"), scenarios),
        "triggers": _table(("Spark's trigger", "Latency", "For", "In `pipeline.yml`"), triggers),
        "questions": _table(("Option", "Question", "Answers", "Leads to"), questions),
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in lines)
        .replace("| --- | ", "|---|")
        .replace("--- |", "---|")
        .replace(" ---", "---")
    )
