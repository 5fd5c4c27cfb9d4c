"""A continuous update without Spark: who starts when, who starts again, and what ends it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow

from headwater.definitions.dataset import DatasetKind
from headwater.errors import FlowFailed, FlowInterrupted, LeaseLost
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.execution import continuous
from headwater_spark.execution.continuous_run import ContinuousRun
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.remedies import RestartLater
from headwater_spark.execution.restarts import Start, run_with_restarts

NAMES = ("bronze", "silver", "other")
AFTER = {"silver": ("bronze",)}


class Watch:
    """A definition that changes when it is told to."""

    changed = False

    def look(self) -> tuple[bool, str]:
        return self.changed, ""


@dataclass
class Update:
    """A continuous update of three streams, the second of which reads the first; ``does``: what a flow does when it runs."""

    context: object
    does: dict
    watch: Watch
    ran: list[str]
    left: list[tuple[str, list[str]]] = field(default_factory=list)

    def run(self) -> tuple[str, dict[str, FlowOutcome]]:
        stages = tuple(
            RefreshStage(name, DatasetKind.STREAMING_TABLE, (name,), AFTER.get(name, ())) for name in NAMES
        )
        outcomes = {name: FlowOutcome(name, name) for name in NAMES}
        return continuous.run_continuously(
            self.context, UpdatePlan((), stages), outcomes, self.watch
        ), outcomes


@pytest.fixture
def update(tmp_path, monkeypatch):
    flows = tuple(flow(name) for name in NAMES)
    context = context_of(tmp_path, *(dataset(name) for name in NAMES), flows=flows)
    made = Update(context, {}, Watch(), [])

    def run_flow(run: FlowRun, **_: object) -> None:
        made.ran.append(run.name)
        made.does[run.name](run)

    monkeypatch.setattr(continuous, "run_flow", run_flow)
    monkeypatch.setattr(continuous, "record_end", lambda *_: None)

    def leave_out(_: object, outcome: FlowOutcome, failed: list[str]) -> None:
        outcome.status = FlowStatus.SKIPPED if failed else FlowStatus.STOPPED
        made.left.append((outcome.flow, failed))

    monkeypatch.setattr(continuous, "leave_out", leave_out)
    monkeypatch.setattr(continuous, "flow_intervals", lambda *_: dict.fromkeys(NAMES, 0.01))
    monkeypatch.setattr(continuous, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(continuous, "has_written", lambda *_: False)
    return made


def until_stopped(run: FlowRun) -> None:
    run.context.continuous.looked(run.name)
    run.context.stop_requested.wait(20)
    run.outcome.status = FlowStatus.STOPPED


def test_a_reader_starts_when_its_table_has_been_looked_at(update):
    """It waits for the first look of what it reads, and a stop ends all of them."""
    release = threading.Event()

    def slow(run: FlowRun) -> None:
        assert release.wait(20)
        assert "silver" not in update.ran
        until_stopped(run)

    def reader(run: FlowRun) -> None:
        run.context.continuous.looked(run.name)
        run.context.stop_requested.set()

    update.does = {"bronze": slow, "other": lambda run: (release.set(), until_stopped(run)), "silver": reader}
    again, outcomes = update.run()
    assert (again, set(update.ran)) == ("", set(NAMES))
    assert outcomes["bronze"].status is FlowStatus.STOPPED


@pytest.mark.parametrize("looked", [True, False])
def test_a_reader_of_what_has_failed(update, looked):
    """It goes on where the table was looked at before; where nothing was ever in it, it is skipped, and the update ends."""

    def fails(run: FlowRun) -> None:
        if looked:
            run.context.continuous.looked(run.name)
        run.outcome.status = FlowStatus.FAILED

    def ends(run: FlowRun) -> None:
        run.outcome.status = FlowStatus.FAILED

    update.does = {"bronze": fails, "silver": ends, "other": ends}
    update.run()
    assert ("silver" in update.ran) is looked
    assert update.left == ([] if looked else [("silver", ["bronze"])])


@pytest.mark.parametrize("drained", [True, False])
def test_a_flow_waits_for_one_beside_it(update, monkeypatch, drained):
    """Rows of earlier updates do not let it start: the other flow has to be done in this one; where that fails, it is skipped."""
    stage = RefreshStage(
        "bronze", DatasetKind.STREAMING_TABLE, ("bronze", "silver"), waits={"silver": ("bronze",)}
    )
    outcomes = {name: FlowOutcome(name, "bronze") for name in stage.flows}
    monkeypatch.setattr(continuous, "has_written", lambda *_: True)
    order: list[str] = []

    def first(run: FlowRun) -> None:
        time.sleep(0.1)
        order.append("looked")
        if drained:
            until_stopped(run)
        else:
            run.outcome.status = FlowStatus.FAILED

    def second(run: FlowRun) -> None:
        order.append("silver")
        run.context.stop_requested.set()

    update.does = {"bronze": first, "silver": second}
    continuous.run_continuously(update.context, UpdatePlan((), (stage,)), outcomes, update.watch)
    assert order == (["looked", "silver"] if drained else ["looked"])
    assert update.left == ([] if drained else [("silver", ["bronze"])])


@pytest.mark.parametrize("status", [FlowStatus.COMPLETED, FlowStatus.FAILED])
def test_a_flow_that_runs_once_is_done_when_it_is_completed(update, monkeypatch, status):
    """One that failed is done for readers of its table, which have been skipped or run as before, and for no flow that waits for it."""
    run = ContinuousRun({})
    monkeypatch.setattr(continuous, "FlowRun", lambda *_: SimpleNamespace(is_stream=False, name="bronze"))
    monkeypatch.setattr(continuous, "run_flow", lambda *_, **__: None)
    monkeypatch.setattr(
        update.context.pipeline, "flow", lambda _: SimpleNamespace(once=True, name="bronze"), raising=False
    )
    stage = RefreshStage("bronze", DatasetKind.STREAMING_TABLE, ("bronze",))
    continuous._run(update.context, run, stage, FlowOutcome("bronze", "bronze", status))
    stop = threading.Event()
    assert run.wait_for(["bronze"], stop) == frozenset()
    run.gave_up("bronze")
    failed = run.wait_for(["bronze"], stop, in_this_update=True)
    assert failed == (frozenset() if status is FlowStatus.COMPLETED else {"bronze"})


def test_a_reader_that_waits_ends_with_a_stop(update):
    """A flow whose table has not come is not started, and is no failure."""

    def waits(run: FlowRun) -> None:
        run.context.stop_requested.wait(20)
        run.outcome.status = FlowStatus.STOPPED

    def then_stop(run: FlowRun) -> None:
        run.context.stop_requested.wait(0.1)
        run.context.stop_requested.signal()

    update.does = {"bronze": waits, "other": then_stop}
    _, outcomes = update.run()
    assert sorted(update.ran) == ["bronze", "other"]
    assert outcomes["silver"].status is FlowStatus.STOPPED
    assert update.left == [("silver", [])]


def test_a_stop_counts_while_it_ends_for_another_reason(update):
    """A signal that comes when the flows are being stopped for a new definition ends the process all the same."""

    def slow_to_stop(run: FlowRun) -> None:
        until_stopped(run)
        run.context.stop_requested.signal()

    update.watch.changed = True
    update.does = dict.fromkeys(NAMES, slow_to_stop)
    assert update.run()[0] == ""


def test_a_stop_is_recorded_before_it_is_done(update):
    """A driver that is killed while its flows still end has been told to stop, and its log says so; what it does itself is no stop."""
    recorded = threading.Event()

    def slow_to_stop(run: FlowRun) -> None:
        until_stopped(run)
        for _ in range(200):
            if any(kind == "user_action" for kind, _, _ in update.context.events.emitted):
                recorded.set()
                return
            time.sleep(0.05)

    def stops(run: FlowRun) -> None:
        run.context.stop_requested.signal()
        until_stopped(run)

    update.does = {"bronze": slow_to_stop, "silver": until_stopped, "other": stops}
    assert update.run()[0] == ""
    assert recorded.is_set()
    (details,) = [more["details"] for kind, _, more in update.context.events.emitted if kind == "user_action"]
    assert details["user_action"]["action"] == "CANCEL"


def test_python_lets_go_of_plans_while_it_runs(update, monkeypatch):
    """What only a cycle of Python's garbage refers to is let go of within the update, not when Python would come to it."""

    class Plan:
        """Stand in for an object that keeps one of the JVM alive."""

    def waits(run: FlowRun) -> None:
        plan = Plan()
        plan.itself = plan  # type: ignore[attr-defined]
        alive = weakref.ref(plan)
        del plan
        for _ in range(200):
            if alive() is None:
                run.context.stop_requested.set()
                return
            time.sleep(0.05)
        raise AssertionError("still there after ten seconds")

    monkeypatch.setattr(continuous, "COLLECTION", timedelta(0))
    update.does = {"bronze": until_stopped, "silver": until_stopped, "other": waits}
    gc.disable()
    try:
        assert update.run()[0] == ""
    finally:
        gc.enable()


def test_a_changed_definition_ends_all_flows(update):
    """They are stopped as by hand, and the update says that it is to begin again, and why."""

    def change(run: FlowRun) -> None:
        update.watch.changed = True
        until_stopped(run)

    update.does = {"bronze": until_stopped, "silver": until_stopped, "other": change}
    again, outcomes = update.run()
    assert again == "its definition has changed"
    assert not any(kind == "user_action" for kind, _, _ in update.context.events.emitted)
    assert {outcome.status for outcome in outcomes.values()} == {FlowStatus.STOPPED}


def test_a_day_is_enough(update, monkeypatch):
    """An update that has run for long begins again, so that its records have an end."""
    monkeypatch.setattr(continuous, "LONGEST", SimpleNamespace(total_seconds=lambda: 0.05))
    update.does = dict.fromkeys(NAMES, until_stopped)
    assert update.run()[0] == "it has run for a day"


def test_it_ends_when_every_flow_has_failed(update):
    """Nothing is left that could run: the update does not wait for a stop."""

    def fails(run: FlowRun) -> None:
        run.context.continuous.looked(run.name)
        run.outcome.status = FlowStatus.FAILED

    update.does = dict.fromkeys(NAMES, fails)
    again, outcomes = update.run()
    assert again == ""
    assert {outcome.status for outcome in outcomes.values()} == {FlowStatus.FAILED}


def test_what_is_no_flows_failure_ends_the_update(update):
    """A defect of the program is raised, after the flows have been stopped."""

    def defect(run: FlowRun) -> None:
        raise AssertionError("a defect")

    update.does = {"bronze": until_stopped, "silver": until_stopped, "other": defect}
    with pytest.raises(AssertionError, match="a defect"):
        update.run()
    assert update.context.stop_requested.is_set()


def restarted(tmp_path, *ends: Exception | None, batches: int = 0) -> tuple[FlowRun, Exception | None]:
    """A flow that ends in this way, start after start."""
    settings = {"spark.sql.pipelines.execution.watchdog.minRetryTime": "10ms"}
    context = context_of(tmp_path, dataset(), flows=(flow(),))
    context.pipeline.project.configuration.update(settings)
    context.continuous = ContinuousRun({"orders": 5})
    run, left = FlowRun.of(context, dataset(), flow()), list(ends)

    def begin(_: Start) -> None:
        run.outcome.batches += batches
        if (error := left.pop(0)) is not None:
            raise error

    return run, run_with_restarts(begin, (RestartLater.of(run, context.continuous),), context.stop_requested)


def records_of(run: FlowRun) -> list[tuple[str, int]]:
    bodies = [more["details"]["flow_progress"] for _, _, more in run.context.events.emitted]
    return [(body["status"], body["attempt"]) for body in bodies]


def test_a_flow_starts_again_whatever_its_failure(tmp_path):
    """Each failure and each new start have a record with the number of the attempt; a success leaves nothing behind."""
    run, failure = restarted(tmp_path, FlowInterrupted("away"), FlowFailed("wrong"), None)
    assert failure is None
    assert records_of(run) == [("FAILED", 1), ("RESTARTING", 2), ("FAILED", 2), ("RESTARTING", 3)]
    assert all(
        more["details"]["flow_progress"]["will_retry"] and more["error"] is not None
        for _, _, more in run.context.events.emitted[::2]
    )
    assert run.outcome.error is None


def test_terminal_failures_in_a_row_end_it(tmp_path):
    """The fifth is the last one; those of a flow that writes in between are no row."""
    run, failure = restarted(tmp_path, *[FlowFailed("wrong")] * 6)
    assert isinstance(failure, FlowFailed)
    assert records_of(run)[-1] == ("RESTARTING", 5)
    run, failure = restarted(tmp_path, *[FlowFailed("wrong")] * 6, None, batches=1)
    assert failure is None
    assert set(records_of(run)) == {("FAILED", 1), ("RESTARTING", 2)}


def test_a_lost_lease_ends_it(tmp_path):
    """Another process may write now: there is no second start."""
    run, failure = restarted(tmp_path, LeaseLost("gone"), None)
    assert isinstance(failure, LeaseLost)
    assert records_of(run) == []


def test_flows_have_their_own_triggers(tmp_path):
    """A query of a continuous update has its flow's interval; that of another ends with what is there."""
    context = context_of(tmp_path, dataset(), flows=(flow(),))
    assert context.query_trigger("orders") == {"availableNow": True}
    context.continuous = ContinuousRun({"orders": 0.25})
    assert context.query_trigger("orders") == {"processingTime": "250 milliseconds"}


def test_a_view_is_refreshed_when_its_sources_moved(tmp_path, monkeypatch):
    """It is left alone while they stand; where that can't be known it is refreshed each time; a failure ends it."""
    context = context_of(tmp_path, dataset(kind=DatasetKind.MATERIALIZED_VIEW), flows=(flow(),))
    context.pipeline.manifest.flows = (SimpleNamespace(name="orders", time_dependent=False),)
    run = FlowRun.of(context, dataset(kind=DatasetKind.MATERIALIZED_VIEW), flow())
    positions = [{"a": "1"}, {"a": "1"}, {"a": "2"}, None, None, {"a": "2"}]
    refreshed = []

    def run_flow(run: FlowRun, **_: object) -> None:
        refreshed.append(6 - len(positions))
        run.outcome.status = FlowStatus.COMPLETED if positions else FlowStatus.FAILED

    ends = []
    monkeypatch.setattr(continuous, "fingerprints", lambda *_: positions.pop(0))
    monkeypatch.setattr(continuous, "run_flow", run_flow)
    monkeypatch.setattr(continuous, "record_end", lambda _, outcome: ends.append(outcome.status))
    shared = ContinuousRun({"orders": 0.001})
    continuous._refresh(run, shared, lambda: None)
    assert refreshed == [1, 3, 4, 5, 6]
    assert ends == [FlowStatus.COMPLETED] * 4 + [FlowStatus.FAILED]
    assert shared.is_readable("orders")
