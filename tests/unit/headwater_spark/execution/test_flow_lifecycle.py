"""The terminal record of a flow, written after its rows are committed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, run_of

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.errors import FlowFailed, FlowInterrupted, LeaseLost, RefusedForSafety
from headwater.event_log.details import FlowStatus
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import FlowLag
from headwater.storage.listing import current_look
from headwater_spark.execution import flow_lifecycle
from headwater_spark.execution.outcome import FlowOutcome


class Context:
    """As much of an update's context as a record needs."""

    def __init__(self) -> None:
        entry = SimpleNamespace(name="bronze", target="bronze", streaming=True)
        self.pipeline: Any = SimpleNamespace(project=None, manifest=SimpleNamespace(flow=lambda _: entry))
        self.more_rounds = False
        self.records: list[dict[str, Any]] = []

    def checkpoint(self, dataset: str, flow: str) -> FlowCheckpoint:
        return FlowCheckpoint(Path(dataset) / flow)

    def say(self, line: str, *, flow: str | None = None) -> None:
        assert ("COMPLETED" in line, flow) == (True, "bronze")

    def flow_event(self, outcome: FlowOutcome, status: FlowStatus, message: str, **details: Any) -> None:
        self.records.append({"status": status, **details})


@pytest.mark.parametrize(
    "error", [FileNotFoundError("x.tmp"), KeyError("logOffset"), RuntimeError("a client")]
)
def test_lag_that_can_not_be_measured_fails_no_committed_flow(
    monkeypatch: pytest.MonkeyPatch, error: Exception
):
    """The flow stays COMPLETED, and its record says why no backlog is in it."""

    def flow_lag(*_: object) -> FlowLag:
        raise error

    monkeypatch.setattr(flow_lifecycle, "flow_lag", flow_lag)
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    outcome.status = FlowStatus.COMPLETED
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    (record,) = context.records
    assert record["status"] is FlowStatus.COMPLETED
    assert type(error).__name__ in record["metrics"]["backlog_unknown"]
    assert outcome.backlog_records is None


def test_lag_is_measured_in_one_look(monkeypatch: pytest.MonkeyPatch):
    """On a store the checkpoint is listed once for it."""
    looks: list[Any] = []

    def flow_lag(*_: object) -> FlowLag:
        looks.append(current_look())
        return FlowLag("bronze", "bronze", True, Backlog(records=0, moved=False), ())

    monkeypatch.setattr(flow_lifecycle, "flow_lag", flow_lag)
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    outcome.status = FlowStatus.COMPLETED
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert looks[0] is not None
    assert current_look() is None


def test_the_reason_of_each_source_is_in_the_record(monkeypatch: pytest.MonkeyPatch):
    """A measured lag of which a part is not known says so; one that is known has no such entry."""
    known, unknown = Backlog(records=3, moved=True), Backlog.because("the broker is away")
    parts = tuple(SimpleNamespace(name=name, backlog=part) for name, part in (("a", known), ("b", unknown)))
    lag = FlowLag("bronze", "bronze", True, unknown, parts)  # type: ignore[arg-type]
    monkeypatch.setattr(flow_lifecycle, "flow_lag", lambda *_: lag)
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    outcome.status = FlowStatus.COMPLETED
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert context.records[0]["metrics"] == {
        "backlog_unknown": "the broker is away",
        "source_metrics": [
            {"source_name": "a", "backlog_records": 3},
            {"source_name": "b", "backlog_unknown": "the broker is away"},
        ],
    }


@pytest.mark.parametrize(
    ("transient", "left", "again"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_whether_a_failure_is_tried_again(transient: bool, left: bool, again: bool):
    """Where it may pass, and the update has an attempt left."""
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    context.say = lambda *_, **__: None  # type: ignore[method-assign]
    context.attempts_left = left  # type: ignore[attr-defined]
    outcome.status = FlowStatus.FAILED
    outcome.error = FlowInterrupted("no") if transient else FlowFailed("no")
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert [(record["status"], record["will_retry"]) for record in context.records] == [
        (FlowStatus.FAILED, again)
    ]


def test_a_flow_that_was_stopped():
    """It has a version, and says nothing of another try."""
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    context.say = lambda *_, **__: None  # type: ignore[method-assign]
    outcome.status, outcome.version = FlowStatus.STOPPED, 7
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert context.records == [{"status": FlowStatus.STOPPED, "version": 7}]


def test_a_flow_that_will_look_again(monkeypatch: pytest.MonkeyPatch):
    """Between two rounds it is idle."""
    unknown = FlowLag("bronze", "bronze", True, Backlog(), ())
    monkeypatch.setattr(flow_lifecycle, "flow_lag", lambda *_: unknown)
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    context.say = lambda *_, **__: None  # type: ignore[method-assign]
    context.more_rounds, outcome.status = True, FlowStatus.COMPLETED
    flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert [record["status"] for record in context.records] == [FlowStatus.IDLE]


def test_rows_that_rules_kept_out_are_recorded_once(monkeypatch: pytest.MonkeyPatch):
    """The terminal record of a flow without batches has them; the next round begins anew."""
    unknown = FlowLag("bronze", "bronze", True, Backlog(), ())
    monkeypatch.setattr(flow_lifecycle, "flow_lag", lambda *_: unknown)
    context, outcome = Context(), FlowOutcome("bronze", "bronze")
    outcome.status, outcome.data_quality = FlowStatus.COMPLETED, {"dropped": 3}
    for _ in range(2):
        flow_lifecycle.record_end(context, outcome)  # type: ignore[arg-type]
    assert [record.get("dropped") for record in context.records] == [3, None]


@pytest.mark.parametrize(
    ("failure", "lease_is_lost", "condition"),
    [
        (FlowInterrupted("a commit met another one"), True, "LEASE_LOST"),
        (RuntimeError("a commit met another one"), True, "LEASE_LOST"),
        (RuntimeError("a commit met another one"), False, "FLOW_FAILED"),
        (RefusedForSafety("something else"), True, "REFUSED_FOR_SAFETY"),
    ],
)
def test_a_flow_that_failed_without_its_lease_says_so(
    failure: Exception, lease_is_lost: bool, condition: str
):
    """What Delta says of the commit of the driver that has the lease now is no cause; what Headwater itself refused is."""

    def check() -> None:
        if lease_is_lost:
            raise LeaseLost("another one has it")

    pipeline = SimpleNamespace(evaluation=SimpleNamespace(labels=frozenset()))
    run: Any = SimpleNamespace(
        flow=SimpleNamespace(name="bronze", location=None),
        context=SimpleNamespace(pipeline=pipeline, check_lease=check),
    )
    assert flow_lifecycle._error(run, failure).condition == condition


def test_outside_of_an_update_nothing_is_tried_again(tmp_path: Path):
    """A backfill or a replay has no attempt left, unless it says so."""
    assert context_of(tmp_path, dataset()).attempts_left is False


@pytest.mark.parametrize(
    ("failure", "asked"),
    [
        (FileNotFoundError("lake/part-0.parquet"), True),
        (ConnectionResetError("part-0.parquet"), False),
        (LeaseLost("part-0.parquet"), False),
    ],
)
def test_a_failure_that_may_come_of_missing_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Exception, asked: bool
):
    """Where nothing else says what it is, the files of the table are looked at; the finding is the flow's error."""
    messages: list[Any] = []
    finding = RefusedForSafety("Files are gone.")

    def refusal_of_files(run: Any, error: Any, said: Any) -> Exception:
        messages.append(said)
        return finding

    monkeypatch.setattr(flow_lifecycle, "refusal_of_files", refusal_of_files)
    error = flow_lifecycle._error(run_of(context_of(tmp_path, dataset())), failure)
    assert (error is finding) is asked
    assert messages == ([["FileNotFoundError: lake/part-0.parquet"]] if asked else [])
