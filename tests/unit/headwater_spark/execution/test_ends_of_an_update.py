"""With what an update ends, and what of an earlier attempt it leaves alone."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, state_of

from headwater.definitions.trigger import AvailableNow, Continuous, ProcessingTime
from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult
from headwater.graph.update_plan import UpdatePlan
from headwater_spark.execution import update as module
from headwater_spark.execution.outcome import FlowOutcome

LONG = ProcessingTime(timedelta(seconds=1), timedelta(seconds=10))


def ended(
    root: Path, monkeypatch: pytest.MonkeyPatch, *statuses: FlowStatus, trigger: Any, stop: bool
) -> Any:
    """How an update ends whose flows ended like this; and whether somebody had told it to stop."""
    requested = threading.Event()
    if stop:
        requested.set()
    context: Any = context_of(root, dataset(), flows=(flow(),), stop_requested=requested)
    context.pipeline.project.spec.trigger = trigger
    recorded: list[str] = []
    monkeypatch.setattr(module, "record_stop", lambda _: recorded.append("stop"))
    monkeypatch.setattr(type(context), "register_tables", lambda _: recorded.append("tables"))
    outcomes = {
        str(number): FlowOutcome(str(number), "orders", status) for number, status in enumerate(statuses)
    }
    result = module._ended(context, outcomes, 0.0)
    assert recorded == ["stop", "tables"]
    states = [more["details"]["update_progress"]["state"] for _, _, more in context.events.emitted]
    assert states == ["STOPPING", str(result.state)]
    assert context.events.emitted[-1][2]["level"] == ("ERROR" if result.state == "FAILED" else "INFO")
    return result.state


DONE, FAILED, SKIPPED, STOPPED = (
    FlowStatus.COMPLETED,
    FlowStatus.FAILED,
    FlowStatus.SKIPPED,
    FlowStatus.STOPPED,
)


@pytest.mark.parametrize(
    ("statuses", "trigger", "stop", "state"),
    [
        ((DONE, DONE), AvailableNow(), False, "COMPLETED"),
        ((), AvailableNow(), False, "COMPLETED"),
        ((DONE, FAILED), AvailableNow(), False, "FAILED"),
        ((DONE, SKIPPED), AvailableNow(), False, "FAILED"),
        ((FAILED, STOPPED), AvailableNow(), True, "FAILED"),
        ((DONE, STOPPED), AvailableNow(), True, "CANCELED"),
        ((DONE,), AvailableNow(), True, "COMPLETED"),  # all was done before anybody said stop
        ((DONE,), LONG, True, "CANCELED"),  # it would have looked again
        ((DONE,), LONG, False, "COMPLETED"),
        ((STOPPED,), Continuous(), True, "CANCELED"),
    ],
)
def test_the_end_of_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: Any, trigger: Any, stop: bool, state: str
):
    """A flow that failed, or was left out for another, fails it; a stop cancels what was not done."""
    assert ended(tmp_path, monkeypatch, *statuses, trigger=trigger, stop=stop) == state


def graph(**flows: tuple[str, ...]) -> Any:
    """A manifest: the flows into each table."""
    entries = [
        SimpleNamespace(name=name, target=table, once=name.startswith("once"))
        for table, names in flows.items()
        for name in names
    ]
    return SimpleNamespace(
        outputs=[SimpleNamespace(name=table) for table in flows],
        flows=entries,
        flows_into=lambda table: [entry for entry in entries if entry.target == table],
    )


@pytest.mark.parametrize(
    ("request_id", "attempt", "continuous", "left"),
    [
        ("r", 2, False, ["whole"]),
        ("r", 3, False, ["whole"]),
        ("r", 1, False, []),
        (None, 2, False, []),
        ("r", 2, True, []),
    ],
)
def test_what_an_earlier_attempt_has_done(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_id: str | None,
    attempt: int,
    continuous: bool,
    left: list[str],
):
    """A retry leaves alone the tables of which every flow was completed for the same request."""
    results = [
        FlowResult("u1", "whole", "one", "COMPLETED"),
        FlowResult("u1", "whole", "other", "COMPLETED"),
        FlowResult("u1", "part", "some", "COMPLETED"),
        FlowResult("u1", "part", "more", "STOPPED"),
        FlowResult("u1", "broken", "b", "FAILED"),
    ]

    def looked(folder: Path, *, request_id: str) -> list[FlowResult]:
        assert (folder, request_id) == (tmp_path, "r")
        return results

    monkeypatch.setattr(module, "flow_results", looked)
    monkeypatch.setattr(module, "is_continuous", lambda _: continuous)
    project: Any = SimpleNamespace(state_folder=tmp_path)
    asked: Any = SimpleNamespace(request_id=request_id, attempt=attempt)
    manifest = graph(whole=("one", "other"), part=("some", "more"), broken=("b",), empty=())
    assert module._completed_before(project, asked, manifest) == left


def test_flows_that_run_once_and_have(tmp_path: Path):
    """By their states; one that was never run, or did not come to its end, has not."""
    context: Any = context_of(tmp_path, dataset())
    state_of(context, flow="once_done", completed=True)
    state_of(context, flow="once_begun", completed=False)
    state_of(context, flow="live", completed=True)
    manifest = graph(orders=("once_done", "once_begun", "once_never", "live"))
    assert module._completed_once(context.pipeline.project, manifest) == {"once_done"}


@pytest.mark.parametrize(("request_id", "asked"), [("r", [timedelta(minutes=10)]), (None, [])])
def test_who_waits_for_another_update(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request_id: str | None, asked: list[timedelta]
):
    """A scheduled run does, and what it did not need is left for its lease; a person is told at once."""
    waits: list[timedelta] = []

    def wait(_: Path, most: timedelta) -> timedelta:
        waits.append(most)
        return timedelta(minutes=4)

    monkeypatch.setattr(module, "wait_for_turn", wait)
    project: Any = SimpleNamespace(state_folder=tmp_path)
    request: Any = SimpleNamespace(request_id=request_id)
    left = module._wait_without_executors(project, request, "u1")
    assert waits == asked
    assert left == timedelta(minutes=4 if asked else 0)


@pytest.mark.parametrize("trigger", [AvailableNow(), LONG])
def test_whether_more_rounds_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trigger: Any):
    """A flow's end in the first round of an update that runs for a time is not its last; after the rounds it is."""
    context: Any = context_of(tmp_path, dataset(), flows=(flow(),))
    context.pipeline.project.spec.trigger = trigger
    seen: list[tuple[str, bool, bool]] = []

    def note(step: str) -> Any:
        return lambda context, *_: seen.append((step, context.more_rounds, context.ends is not None))

    for name in ("announce", "run_resets"):
        monkeypatch.setattr(module, name, lambda *_, **__: None)
    for name in ("run_refreshes", "more_rounds", "_ended"):
        monkeypatch.setattr(module, name, note(name))
    request: Any = SimpleNamespace(selection=None, attempt=1, requested_at=None, announced_together=False)
    module._run(context, UpdatePlan((), ()), request)
    long = trigger is LONG
    rounds = [("more_rounds", True, True)] if long else []
    assert seen == [("run_refreshes", long, long), *rounds, ("_ended", False, long)]
