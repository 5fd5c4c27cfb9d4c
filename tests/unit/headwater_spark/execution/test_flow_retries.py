"""How often a flow is tried again, and when."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.flow import Flow
from headwater.errors import FlowFailed, FlowInterrupted, HeadwaterError
from headwater.event_log.details import FlowStatus
from headwater_spark.execution import flow_retries
from headwater_spark.execution.flow_retries import run_with_retries
from headwater_spark.execution.outcome import FlowOutcome

ORDERS = Dataset("orders", DatasetName(None, "shop", "orders"), DatasetKind.STREAMING_TABLE)


def tries(
    monkeypatch,
    *ends: HeadwaterError | None,
    retries: str = "3",
    stop_at: int = 99,
    seconds: float | None = None,
):
    """The waits between the tries of a flow that ends as told; what it ends with."""
    told, stop = [], threading.Event()
    project = SimpleNamespace(
        configuration={"pipelines.maxFlowRetryAttempts": retries}, spec=SimpleNamespace(spark={})
    )
    context = SimpleNamespace(
        ends=None if seconds is None else time.monotonic() + seconds,
        time_is_up=False,
        pipeline=SimpleNamespace(project=project),
        flow_retries=0,
        stop_requested=stop,
        say=lambda _: None,
        events=SimpleNamespace(emit=lambda *_, **more: told.append(more["details"]["operation_progress"])),
    )
    outcome, left = FlowOutcome("orders", "orders"), list(ends)
    monkeypatch.setattr(flow_retries, "FIRST_WAIT_SECONDS", 0.01)

    def run() -> None:
        context.time_is_up = context.ends is not None and time.monotonic() >= context.ends
        if len(ends) - len(left) + 1 >= stop_at:
            stop.set()
        outcome.error = left.pop(0)
        outcome.status = FlowStatus.FAILED if outcome.error else FlowStatus.COMPLETED

    run_with_retries(context, ORDERS, Flow("orders", "orders", lambda: None), outcome, run)  # type: ignore[arg-type]
    assert [entry["attempt"] for entry in told] == list(range(1, len(told) + 1))
    return [entry["seconds"] for entry in told], outcome


def test_later_each_time(monkeypatch):
    """What may pass is tried again, each time after twice as long, until it passes; the error is then no more."""
    waits, outcome = tries(monkeypatch, FlowInterrupted("away"), FlowInterrupted("away"), None)
    assert waits == [0.01, 0.02]
    assert (outcome.status, outcome.error) == (FlowStatus.COMPLETED, None)


def test_not_for_ever(monkeypatch):
    """After the last try the error stays."""
    waits, outcome = tries(monkeypatch, *[FlowInterrupted("away")] * 3, retries="2")
    assert (len(waits), outcome.status) == (2, FlowStatus.FAILED)


@pytest.mark.parametrize(
    ("ends", "options"),
    [((FlowFailed("wrong"),), {}), ((FlowInterrupted("away"),), {"retries": "0"}), ((None,), {}),
     ((FlowInterrupted("away"),), {"stop_at": 1})],
)  # fmt: skip
def test_only_what_may_pass(monkeypatch, ends, options):
    """A wrong query, a flow without retries, one that is done and one that is told to stop run one time."""
    waits, outcome = tries(monkeypatch, *ends, **options)
    assert (waits, outcome.error) == ([], ends[-1])


def test_not_beyond_the_end_of_a_long_update(monkeypatch):
    """The last wait is cut to the time that is left; after one more try the error stays."""
    waits, outcome = tries(monkeypatch, *[FlowInterrupted("away")] * 9, retries="8", seconds=0.05)
    assert sum(waits) <= 0.05
    assert len(waits) < 8
    assert outcome.status is FlowStatus.FAILED
