"""What is done before and after a query runs: past epochs end, and only what came to its end is called completed."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, run_of, state_of

from headwater.checkpoints.layout import FlowState
from headwater.errors import LeaseLost
from headwater.event_log.details import FlowStatus
from headwater_spark.execution import streaming_write
from headwater_spark.execution.streaming_write import run_stream


@pytest.mark.parametrize(
    ("epoch", "retired"), [(0, []), (1, [{"p.orders@0"}]), (2, [{"p.orders@0", "p.orders@1"}])]
)
def test_past_epochs_are_ended_before_a_query_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int, retired: list[set[str]]
):
    """From the second epoch on: a driver of the one before may stand still behind its check of the lease."""
    context = context_of(tmp_path, dataset())
    checkpoint = state_of(context, epoch=epoch)
    for number in range(epoch + 1):
        checkpoint.epoch_folder(number).mkdir()
    ended: list[set[str]] = []
    monkeypatch.setattr(streaming_write, "retire", lambda _, __, ids: ended.append(set(ids)))
    monkeypatch.setattr(streaming_write, "fixed_settings", lambda *_: {})
    monkeypatch.setattr(type(context), "quarantine_path", lambda *_: None)
    state = streaming_write._opened(run_of(context), checkpoint.surviving_state())
    assert (state.epoch, state.completed, ended) == (epoch, False, retired)


@pytest.mark.parametrize("stopped", [False, True])
def test_what_was_stopped_is_not_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool):
    """The next update must not take a stream that was stopped on its way for one that has nothing new."""
    context = context_of(tmp_path, dataset(), stop_requested=threading.Event())
    saved: list[bool] = []
    cleaned: list[Any] = []

    def query(*_: Any) -> None:
        if stopped:
            context.stop_requested.set()

    for name, made in {
        "check_cores": lambda _: None,
        "take_over": lambda _: None,
        "check_flow": lambda *_: None,
        "_opened": lambda *_: FlowState(),
        "_run_query": query,
        "_save_position": lambda *_, completed: saved.append(completed),
        "clean_sources": cleaned.append,
    }.items():
        monkeypatch.setattr(streaming_write, name, made)
    run = run_of(context)
    run_stream(run)
    assert saved == [not stopped]
    assert run.outcome.status is (FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED)
    assert cleaned == ([] if stopped else [run])


def test_a_query_ends_with_its_lease(tmp_path: Path):
    """It is stopped, and the flow fails: it does not go on as if it had come to its end."""
    stopped: list[bool] = []

    def lost() -> None:
        raise LeaseLost("another one has it")

    context: Any = SimpleNamespace(check_lease=lost)
    query: Any = SimpleNamespace(stop=lambda: stopped.append(True))
    with pytest.raises(LeaseLost):
        streaming_write._stop_without_lease(context, query)
    assert stopped == [True]
