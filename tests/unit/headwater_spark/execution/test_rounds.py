"""Which flows look again in the next round of a long update, without Spark."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.trigger import ProcessingTime
from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.execution import rounds
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.rounds import flows_out, more_rounds

ST = DatasetKind.STREAMING_TABLE
PLAN = UpdatePlan(
    (),
    (
        RefreshStage("bronze", ST, ("web", "app")),
        RefreshStage("silver", ST, ("silver",), ("bronze",)),
        RefreshStage("gold", ST, ("gold",), ("silver",)),
        RefreshStage("alone", ST, ("alone",)),
    ),
)


def outcomes() -> dict[str, FlowOutcome]:
    return {
        flow: FlowOutcome(flow, stage.dataset, FlowStatus.COMPLETED)
        for stage in PLAN.refreshes
        for flow in stage.flows
    }


def test_readers_of_what_failed_are_out():
    """A failed flow is out with all that reads its table; other flows into it, and other tables, go on."""
    results = outcomes()
    assert flows_out(PLAN, results) == {}
    results["app"].status = FlowStatus.FAILED
    assert flows_out(PLAN, results) == {"app": [], "silver": ["bronze"], "gold": ["silver"]}
    results["app"].status, results["silver"].status = FlowStatus.COMPLETED, FlowStatus.SKIPPED
    assert flows_out(PLAN, results) == {"silver": [], "gold": ["silver"]}


def test_what_waits_for_a_failed_flow_is_out():
    """A flow that waits for one of its own table is out with it, through others too, and those beside them go on."""
    waits = {"live": ("history",), "late": ("live",)}
    stage = RefreshStage("bronze", ST, ("late", "live", "history", "beside"), waits=waits)
    results = {flow: FlowOutcome(flow, "bronze", FlowStatus.COMPLETED) for flow in stage.flows}
    assert flows_out(UpdatePlan((), (stage,)), results) == {}
    results["history"].status = FlowStatus.FAILED
    assert flows_out(UpdatePlan((), (stage,)), results) == {
        "history": [],
        "live": ["history"],
        "late": ["live"],
    }


def test_the_others_go_on_until_the_time_is_up(monkeypatch):
    """A flow fails in the second round: it and its readers are left alone from then on, the others look until the end."""
    ran: list[set[str]] = []
    results = outcomes()

    def run(_context: object, plan: UpdatePlan, _outcomes: object) -> None:
        ran.append({flow for stage in plan.refreshes for flow in stage.flows})
        if len(ran) == 1:
            results["app"].status, results["app"].error = FlowStatus.FAILED, FlowFailed("no")

    ended: list[str] = []
    monkeypatch.setattr(rounds, "run_refreshes", run)
    monkeypatch.setattr(rounds, "flow_intervals", lambda *_: dict.fromkeys(results, 0.05))
    monkeypatch.setattr(
        "headwater_spark.execution.schedule.record_end", lambda _, outcome: ended.append(outcome.flow)
    )
    trigger = ProcessingTime(timedelta(seconds=0.05), timedelta(seconds=0.4))
    context = SimpleNamespace(stop_requested=threading.Event())
    started = time.monotonic()
    more_rounds(context, PLAN, results, trigger, started)  # type: ignore[arg-type]
    assert time.monotonic() - started < 2
    assert ran[0] == {"web", "app", "silver", "gold", "alone"}
    assert len(ran) > 3
    assert all(flows == {"web", "alone"} for flows in ran[1:])
    assert ended == ["silver", "gold"]
    assert [results[flow].status for flow in ("silver", "gold")] == [FlowStatus.SKIPPED] * 2
    assert "bronze, which it reads" in str(results["silver"].error)


def test_it_ends_where_nothing_could_look(monkeypatch):
    """Where every flow has failed, the update does not wait for its time."""
    results = outcomes()
    for outcome in results.values():
        outcome.status = FlowStatus.FAILED
    monkeypatch.setattr(rounds, "flow_intervals", lambda *_: dict.fromkeys(results, 60.0))
    trigger = ProcessingTime(timedelta(minutes=1), timedelta(hours=1))
    more_rounds(SimpleNamespace(), PLAN, results, trigger, time.monotonic())  # type: ignore[arg-type]


def test_a_round_that_takes_long(monkeypatch):
    """It is followed by one round at once, and not by all that were missed; no round begins when the time is up."""
    clock, began = [100.0], list[float]()

    def run(*_: object) -> None:
        began.append(clock[0])
        clock[0] += 10 if len(began) == 1 else 0

    def wait(seconds: float) -> bool:
        clock[0] += seconds
        return False

    results = outcomes()
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(rounds, "run_refreshes", run)
    monkeypatch.setattr(rounds, "flow_intervals", lambda *_: dict.fromkeys(results, 3.0))
    trigger = ProcessingTime(timedelta(seconds=3), timedelta(seconds=20))
    more_rounds(SimpleNamespace(stop_requested=SimpleNamespace(wait=wait)), PLAN, results, trigger, 100.0)  # type: ignore[arg-type]
    assert began == [103.0, 113.0, 116.0, 119.0]


def test_no_round_begins_as_the_time_is_up(monkeypatch):
    """A round that is due at the very end is left to the next update; a round needs no other settings than the first one had."""
    clock, plans = [100.0], list[UpdatePlan]()

    def wait(seconds: float) -> bool:
        clock[0] += seconds
        return False

    results = outcomes()
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(rounds, "run_refreshes", lambda _, plan, __: plans.append(plan))
    monkeypatch.setattr(rounds, "flow_intervals", lambda *_: dict.fromkeys(results, 3.0))
    trigger = ProcessingTime(timedelta(seconds=3), timedelta(seconds=6))
    whole = UpdatePlan((), tuple(replace(stage, whole=True) for stage in PLAN.refreshes))
    more_rounds(SimpleNamespace(stop_requested=SimpleNamespace(wait=wait)), whole, results, trigger, 100.0)  # type: ignore[arg-type]
    assert (clock[0], len(plans)) == (103.0, 1)
    assert [stage.whole for stage in plans[0].refreshes] == [False] * 4


def test_a_flow_that_fails_in_the_last_round(monkeypatch):
    """Its readers are left out in that same moment: no update ends with a flow as complete whose source is not."""
    clock, ended, results = [100.0], list[tuple[str, list[str]]](), outcomes()

    def wait(seconds: float) -> bool:
        clock[0] += seconds
        return False

    def run(*_: object) -> None:
        results["app"].status = FlowStatus.FAILED

    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(rounds, "run_refreshes", run)
    monkeypatch.setattr(rounds, "leave_out", lambda _, outcome, failed: ended.append((outcome.flow, failed)))
    monkeypatch.setattr(rounds, "flow_intervals", lambda *_: dict.fromkeys(results, 3.0))
    trigger = ProcessingTime(timedelta(seconds=3), timedelta(seconds=5))
    more_rounds(SimpleNamespace(stop_requested=SimpleNamespace(wait=wait)), PLAN, results, trigger, 100.0)  # type: ignore[arg-type]
    assert ended == [("silver", ["bronze"]), ("gold", ["silver"])]
