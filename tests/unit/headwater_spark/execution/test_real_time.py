"""Flows in real-time mode without Spark: their trigger, their cores, and how they are stopped."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow

from headwater.definitions.source import SourceKind
from headwater.graph.conditions import RealTimeNotPermitted
from headwater.graph.manifest import FlowEntry, SourceEntry
from headwater_spark.execution import real_time
from headwater_spark.execution.continuous_run import ContinuousRun
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.real_time import check_cores, count_partitions, has_settled, wait_for_position

REAL_TIME = {"pipelines.trigger": "RealTime"}


def topic(name: str, partitions: int) -> SourceEntry:
    """A topic whose name says how many partitions it has."""
    options = {"kafka.bootstrap.servers": "b:1", "subscribe": f"{name}-{partitions}"}
    return SourceEntry(kind=SourceKind.KAFKA, streaming=True, options=options)


def connect(servers: str):
    """A broker that reads the number of partitions from a topic's name."""
    assert servers == "b:1"
    return nullcontext(
        SimpleNamespace(
            partitions=lambda options: [("t", n) for n in range(int(options["subscribe"].rpartition("-")[2]))]
        )
    )


def run_with(
    tmp_path, monkeypatch, cores: int | None, *others: FlowEntry, continuous: bool = True
) -> FlowRun:
    """A flow in real-time mode that reads three partitions, in a pipeline with others."""
    fast = flow("fast", "orders", spark_conf=REAL_TIME)
    flows = (fast, *(flow(entry.name, "orders") for entry in others))
    context = context_of(tmp_path, dataset(), flows=flows)
    context.pipeline.registry.flows = lambda: list(flows)
    context.pipeline.manifest.flows = (
        FlowEntry(name="fast", target="orders", streaming=True, sources=(topic("orders", 3),)),
        *others,
    )
    context.continuous = ContinuousRun({"fast": 300.0, "slow": 5.0}) if continuous else None
    monkeypatch.setattr(real_time, "_cores", lambda _: cores)
    monkeypatch.setattr(real_time, "broker_connection", lambda _: connect)
    return FlowRun.of(context, dataset(), fast)


def test_its_trigger(tmp_path, monkeypatch):
    """A continuous update starts it in real-time mode, beside others in batches; an update that ends reads what is there."""
    slow = FlowEntry(name="slow", target="orders", streaming=True)
    run = run_with(tmp_path, monkeypatch, 9, slow)
    assert run.context.query_trigger("fast") == {"realTime": "300000 milliseconds"}
    assert run.context.query_trigger("slow") == {"processingTime": "5000 milliseconds"}
    ends = run_with(tmp_path, monkeypatch, 9, slow, continuous=False)
    assert ends.context.query_trigger("fast") == {"availableNow": True}


@pytest.mark.parametrize(
    ("cores", "alone", "permitted"),
    [(2, True, False), (3, True, True), (3, False, False), (4, False, True), (None, False, True)],
)
def test_partitions_take_cores(tmp_path, monkeypatch, cores, alone, permitted):
    """Each takes one for as long as the flow runs, and other flows need one more: with fewer nothing would ever move."""
    slow = FlowEntry(name="slow", target="orders", streaming=True, sources=(topic("other", 50),))
    run = run_with(tmp_path, monkeypatch, cores, *(() if alone else (slow,)))
    if permitted:
        check_cores(run)
        return
    with pytest.raises(RealTimeNotPermitted, match=f"3 partitions.*{cores} cores"):
        check_cores(run)


def test_an_update_that_ends_needs_no_more_cores(tmp_path, monkeypatch):
    """It runs the flow in batches, and no broker is asked."""
    monkeypatch.setattr(real_time, "count_partitions", lambda *_: pytest.fail("not asked"))
    check_cores(run_with(tmp_path, monkeypatch, 1, continuous=False))


def test_all_topics_of_all_such_flows_count(tmp_path):
    """Those of flows in batches, and what is read as a batch, do not."""
    still = topic("still", 7).model_copy(update={"streaming": False})
    flows = (
        FlowEntry(name="a", target="t", streaming=True, sources=(topic("x", 2), topic("y", 1), still)),
        FlowEntry(name="b", target="t", streaming=True, sources=(topic("z", 4),)),
        FlowEntry(name="c", target="t", streaming=True, sources=(topic("w", 9),)),
    )
    assert count_partitions(SimpleNamespace(flows=flows), {"a", "b"}, connect) == 7  # type: ignore[arg-type]


def commit(folder, batch: int) -> None:
    """A batch is done."""
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True, exist_ok=True)
        (folder / log / str(batch)).write_text("v1\n{}\n")


@pytest.mark.parametrize("first", [None, 4])
def test_a_stop_waits_for_the_position(tmp_path, first):
    """For that of the batch that runs, and its record; whatever was committed before is none."""
    if first is not None:
        commit(tmp_path, first)
    recorded = threading.Event()
    query = SimpleNamespace(isActive=True)
    ended: list[float] = []
    waiting = threading.Thread(
        target=lambda: (wait_for_position(query, tmp_path, 20, recorded=recorded.is_set), ended.append(1))  # type: ignore[arg-type]
    )
    waiting.start()
    time.sleep(0.2)
    assert not ended
    commit(tmp_path, 0 if first is None else first + 1)
    time.sleep(0.2)
    assert not ended
    recorded.set()
    waiting.join(10)
    assert ended


def test_a_stop_does_not_wait_for_ever(tmp_path):
    """Not longer than it may, and not for a query that has ended."""
    began = time.monotonic()
    wait_for_position(SimpleNamespace(isActive=True), tmp_path, 0.2, recorded=lambda: True)  # type: ignore[arg-type]
    wait_for_position(SimpleNamespace(isActive=False), tmp_path, 60, recorded=lambda: True)  # type: ignore[arg-type]
    assert time.monotonic() - began < 10


def test_it_has_settled_after_some_seconds():
    """Spark's own checks come with the first batch: a query that has only begun may still be refused."""
    query = SimpleNamespace(isActive=True)
    assert not has_settled(query, time.monotonic())  # type: ignore[arg-type]
    assert has_settled(query, time.monotonic() - 11)  # type: ignore[arg-type]
    assert not has_settled(SimpleNamespace(isActive=False), time.monotonic() - 11)  # type: ignore[arg-type]
