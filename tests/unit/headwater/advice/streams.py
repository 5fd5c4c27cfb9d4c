"""Facts of streams for the tests of advice: a healthy one, and changes that make it sick."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headwater.advice.facts import (
    BatchFact,
    CommitFact,
    FlowFact,
    PipelineFacts,
    SourceFact,
    StateFact,
    TableFact,
)
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.source import SourceKind

PHASES = {
    "addBatch": 0.6,
    "latestOffset": 0.02,
    "walCommit": 0.05,
    "queryPlanning": 0.05,
    "triggerExecution": 1.0,
}
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def batches(count: int, update: str = "u1", **changes: Any) -> tuple[BatchFact, ...]:
    """Batches one like the other; a change is a value, or a function of the batch's number."""
    plain = BatchFact(0, update, 1000, 1.0, 90.0, 100.0, PHASES, (), None, 0.8)
    made = []
    for number in range(count):
        values = {name: value(number) if callable(value) else value for name, value in changes.items()}
        made.append(replace(plain, **{"batch_id": number, **values}))
    return tuple(made)


def state(
    number: int, *, rows: int = 500, each: int = 0, removed: int = 0, operator: str = "dedupe"
) -> tuple[StateFact, ...]:
    """The state after a batch that adds so many rows."""
    return (StateFact(operator, rows + number * each, 100 * (rows + number * each), removed),)


def flow(**changes: Any) -> FlowFact:
    """A stream of files that has read all, with a limit, in batches of a second."""
    files = SourceFact(SourceKind.FILES, "landing", {"maxFilesPerTrigger": "10"}, unread={"files": 0})
    plain = FlowFact("events", "events", batches(8), (files,), time_columns=("happened",))
    return replace(plain, **changes)


def table(**changes: Any) -> TableFact:
    """A table of a few files with a rule that quarantines."""
    rule = ("known", "id IS NOT NULL", ViolationAction.QUARANTINE)
    commits = tuple(CommitFact(1, 1_000_000) for _ in range(5))
    return replace(
        TableFact("events", rules=(rule,), files=8, bytes=8_000_000, commits=commits, columns={"id": "int"}),
        **changes,
    )


def pipeline(one: FlowFact | None = None, of: TableFact | None = None, **changes: Any) -> PipelineFacts:
    """A pipeline of one flow into one table, on two cores, every five minutes."""
    plain = PipelineFacts(
        "jobs/pipelines/shop", (one or flow(),), (of or table(),), schedule_gap=300.0, cores=2
    )
    return replace(plain, **changes)
