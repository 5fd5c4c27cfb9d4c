"""Which flow of an update runs when, whose progress is whose, and flows that run once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType
from tests.unit.headwater_spark.recorded_writes import RecordedFrame
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.execution import flow_writer, schedule, start_checks
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.once_flow import run_once
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.progress import ProgressListener
from headwater_spark.execution.schedule import run_refreshes
from headwater_spark.plans.output_mode import OutputMode

ORDERS = dataset()
ID = "11111111-2222-3333-4444-555555555555"


def test_progress_goes_to_the_query_it_is_of():
    """Handlers know their queries by name; the end, which has only a run's id, is reported once, and nothing comes after it."""
    listener, seen = ProgressListener(), []
    ended = listener.expect("p.orders", seen.append)
    other = listener.expect("p.other", seen.append)

    def event(name: str | None, run: int) -> Any:
        return SimpleNamespace(name=name, runId=run, progress=SimpleNamespace(name=name))

    listener.onQueryStarted(event("p.orders", 1))
    listener.onQueryStarted(event(None, 2))
    first, stray = event("p.orders", 1), event(None, 2)
    listener.onQueryProgress(first)
    listener.onQueryProgress(stray)
    assert seen == [first.progress]
    listener.onQueryTerminated(event(None, 2))
    assert not ended.is_set()
    listener.onQueryTerminated(event(None, 1))
    assert (ended.is_set(), other.is_set()) == (True, False)
    listener.onQueryProgress(first)
    assert seen == [first.progress]


def once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **more: Any) -> tuple[list[Any], FlowOutcome, Any]:
    """The rows that a flow that runs once appends, its outcome, and the context."""
    table = more.get("table", ORDERS)
    context: Any = context_of(tmp_path, table)
    rows = RecordedFrame()
    evaluation = context.pipeline.evaluation
    evaluation.settings = lambda *_: nullcontext()
    evaluation.evaluate = lambda _: rows
    monkeypatch.setattr(start_checks, "check_flow", lambda *_: None)
    monkeypatch.setattr(flow_writer, "Observation", lambda: SimpleNamespace(get={"rows": 3, "dropped": 1}))
    monkeypatch.setattr(flow_writer, "apply_expectations", lambda frame, *_: frame)
    run = run_of(context, table, flow(target=table.name, once=True))
    run_once(run)
    return rows.writes, run.outcome, context


def test_a_flow_that_runs_once(monkeypatch, tmp_path: Path):
    """Its rows are one append under its epoch's id and number 0; then it is done until a full refresh."""
    (written,), outcome, context = once(monkeypatch, tmp_path)
    metadata = {"pipeline": "p", "flow": "orders", "epoch": 0}
    assert written.options_given == {
        "mergeSchema": "true", "txnAppId": "p.orders@0", "txnVersion": "0", "userMetadata": json.dumps(metadata),
    }  # fmt: skip
    assert (outcome.status, outcome.input_rows, outcome.output_rows, outcome.dropped_rows) == (
        FlowStatus.COMPLETED, 3, 2, 1,
    )  # fmt: skip
    assert context.checkpoint("orders", "orders").read_state().completed
    assert once(monkeypatch, tmp_path)[0] == []


def test_a_flow_whose_driver_died_before_it_could_say_so(monkeypatch, tmp_path: Path):
    """The table has its rows under its id: they are not appended again, also where its state is lost."""
    context = context_of(tmp_path, ORDERS)
    metadata = {"pipeline": "p", "flow": "orders", "epoch": 4}
    commit(context.table_path(ORDERS), transactions={"p.orders@4": 0}, metadata=metadata)
    written, outcome, context = once(monkeypatch, tmp_path)
    assert (written, outcome.status) == ([], FlowStatus.COMPLETED)
    state = context.checkpoint("orders", "orders").read_state()
    assert (state.epoch, state.completed, state.sink_id, state.sink_version) == (4, True, ID, 0)


def test_a_sink_that_takes_rows_once(monkeypatch, tmp_path: Path):
    """A format of Spark's takes them with its options; there is no table that could know them."""
    (written,), _, _ = once(monkeypatch, tmp_path, table=sink(SinkKind.OTHER, "jdbc", "mart", url="x"))
    assert (written.words, written.options_given) == ({"format": "jdbc", "mode": "append"}, {"url": "x"})


def walked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stages: dict[str, tuple[str, ...]], failing: set[str]
) -> tuple[list[str], dict[str, FlowOutcome]]:
    """The order in which flows ran, and their outcomes; ``stages``: what each waits for."""
    tables = [dataset(name) for name in stages]
    context: Any = context_of(tmp_path, *tables, flows=tuple(flow(name) for name in stages))
    context.pipeline.evaluation.table_schema = lambda _: StructType([])
    ran: list[str] = []

    def run(one: FlowRun, *, force: bool) -> None:
        ran.append(one.name)
        one.outcome.status = FlowStatus.FAILED if one.name in failing else FlowStatus.COMPLETED
        one.outcome.error = FlowFailed("no") if one.name in failing else None

    monkeypatch.setattr(schedule, "run_flow", run)
    monkeypatch.setattr(schedule, "record_end", lambda *_: None)
    monkeypatch.setattr(schedule, "finish_replacements", lambda *_: None)
    outcomes = {name: FlowOutcome(name, name) for name in stages}
    kind = DatasetKind.STREAMING_TABLE
    refreshes = tuple(RefreshStage(name, kind, (name,), after) for name, after in stages.items())
    run_refreshes(context, UpdatePlan((), refreshes), outcomes)
    return ran, outcomes


def test_readers_of_what_failed_are_skipped(monkeypatch, tmp_path: Path):
    """However far away; others go on, and each comes after what it reads."""
    stages = {"a": (), "b": ("a",), "c": ("b",), "x": (), "y": ("x",), "z": ("y", "a")}
    ran, outcomes = walked(monkeypatch, tmp_path, stages, {"a"})
    assert set(ran) == {"a", "x", "y"}
    assert ran.index("x") < ran.index("y")
    statuses = {name: outcome.status for name, outcome in outcomes.items()}
    lost = FlowStatus.SKIPPED
    assert statuses == {
        "a": FlowStatus.FAILED,
        "b": lost,
        "c": lost,
        "z": lost,
        "x": FlowStatus.COMPLETED,
        "y": FlowStatus.COMPLETED,
    }
    assert outcomes["z"].error is not None
    assert "a, which it reads" in outcomes["z"].error.what


@pytest.mark.parametrize(
    ("mode", "merges"),
    [("append", False), ("update", True), ("replace", True), ("changes", True), ("complete", False)],
)
def test_what_must_be_there_before_it_is_written(tmp_path: Path, mode: str, merges: bool):
    """A table that rows are merged into."""
    context = context_of(tmp_path, ORDERS, flows=(flow(),), modes={"orders": OutputMode(OutputKind(mode))})
    assert (
        schedule._merges(context, RefreshStage("orders", DatasetKind.STREAMING_TABLE, ("orders",))) is merges
    )
