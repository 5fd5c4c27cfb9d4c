"""Which flow runs when, without Spark: the walk over the stages of a plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.definitions.dataset import DatasetKind
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.execution import schedule
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import MAX_CONCURRENT_FLOWS, run_refreshes, walk


def stages_of(reads: Mapping[str, Sequence[str]]) -> list[RefreshStage]:
    """A stage a dataset, with one flow of the same name."""
    return [RefreshStage(n, DatasetKind.STREAMING_TABLE, (n,), tuple(after)) for n, after in reads.items()]


class Run:
    """A walk whose flows do nothing but end, well or not."""

    def __init__(
        self,
        stages: Sequence[RefreshStage],
        failing: Sequence[str] = (),
        stop_after: int = 99,
        slow: Sequence[str] = (),
    ) -> None:
        self.begun: list[str] = []
        self.done: list[str] = []
        self.left_out: dict[str, list[str]] = {}
        self.flows_left_out: dict[str, list[str]] = {}
        self.most = 0
        self._stages, self._failing, self._slow, self._lock = stages, failing, slow, threading.Lock()
        walk(stages, self._run, self._leave_out, lambda: len(self.done) >= stop_after)

    def _run(self, stage: RefreshStage, flow: str) -> bool:
        with self._lock:
            over = {*self.done, *(s.dataset for s in self._stages if not set(s.flows) - set(self.done))}
            assert not {*stage.after, *stage.before(flow)} - over - {"elsewhere"}
            self.begun.append(flow)
            self.most = max(self.most, len(self.begun) - len(self.done))
        time.sleep(0.1 if flow in self._slow else 0.01)
        with self._lock:
            self.done.append(flow)
        return flow not in self._failing

    def _leave_out(self, stage: RefreshStage, lost: list[str]) -> None:
        self.left_out[stage.dataset] = lost
        self.flows_left_out.update(dict.fromkeys(stage.flows, lost))


def test_readers_of_a_failed_flow_are_left_out():
    """A failure stops its readers and theirs, and nothing beside them."""
    reads = {"bronze": [], "silver": ["bronze"], "gold": ["silver"], "alone": [], "beside": ["alone"]}
    run = Run(stages_of(reads), failing=["bronze"])
    assert run.left_out == {"silver": ["bronze"], "gold": ["silver"]}
    assert sorted(run.done) == ["alone", "beside", "bronze"]


@pytest.mark.parametrize("slow", ["web", "app"])
def test_a_table_is_done_when_all_its_flows_are(slow: str):
    """One flow of several fails, first or last: the others run, and readers of the table are left out once all have ended."""
    bronze = RefreshStage("bronze", DatasetKind.STREAMING_TABLE, ("web", "app"))
    run = Run([bronze, *stages_of({"silver": ["bronze"]})], failing=["app"], slow=[slow])
    assert sorted(run.done) == ["app", "web"]
    assert run.left_out == {"silver": ["bronze"]}


def events(**waits: tuple[str, ...]) -> RefreshStage:
    """A table with three flows, some of which wait for others."""
    return RefreshStage("events", DatasetKind.STREAMING_TABLE, ("live", "history", "late"), waits=waits)


def test_a_flow_waits_for_one_beside_it():
    """History is drained first, then the live flow begins; readers of the table wait for both."""
    reader = RefreshStage("silver", DatasetKind.STREAMING_TABLE, ("silver",), ("events",))
    run = Run([events(live=("history",)), reader], slow=["history"])
    assert run.done == ["late", "history", "live", "silver"]
    chain = Run([events(live=("history",), history=("late",))], slow=["late"])
    assert chain.done == ["late", "history", "live"]


def test_a_flow_whose_predecessor_failed_is_left_out():
    """So is what waits for that one; a flow beside them runs, and readers of the table are left out."""
    reader = RefreshStage("silver", DatasetKind.STREAMING_TABLE, ("silver",), ("events",))
    run = Run([events(live=("history",)), reader], failing=["history"])
    assert sorted(run.done) == ["history", "late"]
    assert run.flows_left_out == {"live": ["history"], "silver": ["events"]}
    chain = Run([events(live=("history",), history=("late",))], failing=["late"])
    assert chain.done == ["late"]
    assert chain.flows_left_out == {"history": ["late"], "live": ["history"]}


def test_after_a_stop_no_flow_of_a_table_is_begun():
    """A flow that still waits for another one when the update is told to stop is left out, blaming nobody."""
    run = Run([events(live=("history",), late=("live",))], stop_after=1)
    assert run.done == ["history"]
    assert run.flows_left_out == {"live": [], "late": ["live"]}


def test_so_many_at_once():
    """Independent flows run side by side, up to the limit, and begin in the order of the plan."""
    run = Run(stages_of({f"t{number}": [] for number in range(3 * MAX_CONCURRENT_FLOWS)}))
    assert 1 < run.most <= MAX_CONCURRENT_FLOWS
    assert run.begun[0] == "t0"
    assert len(run.done) == 3 * MAX_CONCURRENT_FLOWS


def test_as_many_at_once_as_the_pipeline_says():
    """A limit of the pipeline's own counts; without any, all that can run do."""
    stages, together = stages_of({f"t{number}": [] for number in range(9)}), threading.Barrier(9)

    def meets_the_others(stage: RefreshStage, flow: str) -> bool:
        together.wait(30)
        return True

    walk(stages, meets_the_others, lambda *_: None, lambda: False, None)
    alone = threading.Lock()

    def is_alone(stage: RefreshStage, flow: str) -> bool:
        assert alone.acquire(blocking=False)
        time.sleep(0.01)
        alone.release()
        return True

    walk(stages, is_alone, lambda *_: None, lambda: False, 1)


def test_after_a_stop_nothing_is_begun():
    """Told to stop, the walk ends what runs and leaves the rest out, blaming nobody."""
    run = Run(stages_of({"bronze": [], "silver": ["bronze"], "gold": ["silver"]}), stop_after=1)
    assert run.done == ["bronze"]
    assert run.left_out == {"silver": [], "gold": ["silver"]}


def test_what_is_not_walked_is_done():
    """A stage that reads what is not part of this walk does not wait for it."""
    assert Run(stages_of({"silver": ["elsewhere"]})).done == ["silver"]


def test_an_error_of_our_own_ends_the_walk():
    """What a flow's run raises, though it should not, is not swallowed."""

    def broken(stage: RefreshStage, flow: str) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        walk(stages_of({"bronze": []}), broken, lambda *_: None, lambda: False)


@given(st.data())
def test_any_graph(data: st.DataObject):
    """Every stage is run or left out, once; just those are left out that read, through whatever, from a failed one."""
    names = [f"t{number}" for number in range(data.draw(st.integers(1, 7)))]
    reads = {
        n: data.draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else []
        for i, n in enumerate(names)
    }
    failing = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    run = Run(stages_of(reads), failing)
    lost: set[str] = set()
    for name in names:
        if any(upstream in lost or upstream in failing for upstream in reads[name]):
            lost.add(name)
    assert sorted(run.left_out) == sorted(lost)
    assert sorted(run.done) == sorted(set(names) - lost)


@pytest.mark.parametrize(
    ("status", "left"),
    [(FlowStatus.FAILED, FlowStatus.SKIPPED), (FlowStatus.SKIPPED, FlowStatus.SKIPPED), (FlowStatus.STOPPED, FlowStatus.STOPPED)],
)  # fmt: skip
def test_what_a_flow_that_is_left_out_says(
    monkeypatch: pytest.MonkeyPatch, status: FlowStatus, left: FlowStatus
):
    """Skipped, with the name of what failed; where the table before it was stopped on request, it was stopped with that."""
    stages = stages_of({"bronze": [], "silver": ["bronze"]})
    outcomes = {
        stage.dataset: FlowOutcome(stage.dataset, stage.dataset, FlowStatus.QUEUED) for stage in stages
    }

    def walked(_: object, __: object, skip: Any, *___: object) -> None:
        outcomes["bronze"].status = status
        skip(stages[1], ["bronze"])

    monkeypatch.setattr(schedule, "walk", walked)
    monkeypatch.setattr(schedule, "readers", lambda *_: None)
    monkeypatch.setattr(schedule, "concurrent_flows", lambda *_, **__: 1)
    monkeypatch.setattr(schedule, "record_end", lambda *_: None)
    context: Any = SimpleNamespace(
        changes=SimpleNamespace(expect=lambda _: None), stop_requested=threading.Event(),
        pipeline=SimpleNamespace(project=SimpleNamespace(configuration={}, spec=SimpleNamespace(spark={}))),
    )  # fmt: skip
    run_refreshes(context, UpdatePlan((), tuple(stages), ()), outcomes)
    assert outcomes["silver"].status is left
    assert ("bronze, which it reads" in str(outcomes["silver"].error)) is (left is FlowStatus.SKIPPED)
