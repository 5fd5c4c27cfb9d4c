"""How a flow is begun, as what it runs, and what its outcome is."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of

from headwater.definitions.dataset import DatasetKind
from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus
from headwater_spark.execution import flow_lifecycle as module
from headwater_spark.execution.restarts import Start

VIEW = dataset(kind=DatasetKind.MATERIALIZED_VIEW)


class Started:
    """A start of the flow ``orders``, and what it did in order."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, table: Any = None, **more: Any) -> None:
        self.steps: list[Any] = []
        one = flow(**more)
        context: Any = context_of(root, table or dataset(), flows=(one,), stop_requested=threading.Event())
        context.pipeline.evaluation.cloud = SimpleNamespace(careful={"orders", "other"})
        self.run: Any = run_of(context, table, one)
        object.__setattr__(self.run, "entry", SimpleNamespace(sources=()))
        monkeypatch.setattr(type(context), "check_lease", lambda _: self.steps.append("lease"))
        monkeypatch.setattr(
            type(self.run),
            "record",
            lambda _, status, message, **more: self.steps.append((str(status), message, more)),
        )
        monkeypatch.setattr(module, "check_brokers", lambda _: self.steps.append("brokers"))
        monkeypatch.setattr(module, "refresh_view", lambda _, force: self.steps.append(("view", force)))
        for kind in ("run_snapshots", "run_once"):
            monkeypatch.setattr(module, kind, lambda _, kind=kind: self.steps.append(kind))
        monkeypatch.setattr(module, "run_stream", lambda _, files: self.steps.append(("stream", files)))

    def begin(self, start: Start | None = None, *, force: bool = False) -> list[Any]:
        """The steps."""
        module._begin(self.run, start or Start(), force=force, prepare=lambda: self.steps.append("prepare"))
        return self.steps


def test_a_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is prepared without the lease; brokers are reached before a query starts; columns are read without care again."""
    started = Started(tmp_path, monkeypatch)
    assert started.begin() == [
        ("STARTING", "orders starts.", {"attempt": None}),
        "lease",
        "prepare",
        "brokers",
        ("stream", ()),
    ]
    assert started.run.context.pipeline.evaluation.cloud.careful == {"other"}


def test_a_start_within_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Only the query starts again, with what is left out; the care that it is for stays."""
    started = Started(tmp_path, monkeypatch)
    files: Any = ("file",)
    assert started.begin(Start(reason="once more", left_out=files)) == [
        ("STARTING", "once more", {}),
        ("stream", files),
    ]
    assert started.run.context.said == ["once more"]
    assert started.run.context.pipeline.evaluation.cloud.careful == {"orders", "other"}


@pytest.mark.parametrize(
    ("table", "more", "ran"),
    [
        (VIEW, {}, ("view", True)),
        (None, {"snapshots": SimpleNamespace()}, "run_snapshots"),
        (None, {"once": True}, "run_once"),
        (None, {}, ("stream", ())),
    ],
)
def test_as_what_a_flow_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Any, more: dict[str, Any], ran: Any
):
    """A view is refreshed, snapshots are followed, a flow that runs once does, and the others are streams."""
    assert Started(tmp_path, monkeypatch, table, **more).begin(force=True)[-1] == ran


def test_the_number_of_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is recorded where an update keeps running, and so tries again itself."""
    started = Started(tmp_path, monkeypatch)
    object.__setattr__(started.run.context, "continuous", SimpleNamespace())
    assert started.begin(Start(attempt=3))[0] == ("STARTING", "orders starts.", {"attempt": 3})


@pytest.mark.parametrize(
    ("failure", "stop", "status", "error"),
    [
        (None, False, FlowStatus.QUEUED, None),
        (FlowFailed("no"), False, FlowStatus.FAILED, FlowFailed),
        (FlowFailed("no"), True, FlowStatus.STOPPED, None),
    ],
)
def test_the_outcome_of_a_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception | None,
    stop: bool,
    status: FlowStatus,
    error: Any,
):
    """What fails while it is told to stop was stopped: it has no error."""
    started = Started(tmp_path, monkeypatch)
    requested = started.run.context.stop_requested

    def run(begin: Any, remedies: Any, stopping: threading.Event) -> Exception | None:
        assert stopping is requested
        if stop:
            requested.set()
        return failure

    monkeypatch.setattr(module, "remedies_for", lambda _: ())
    monkeypatch.setattr(module, "run_with_restarts", run)
    module.run_flow(started.run, force=False)
    assert started.run.outcome.status is status
    assert (type(started.run.outcome.error) if started.run.outcome.error else None) is error


def test_the_time_of_all_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It adds up, that of attempts that failed too."""
    started = Started(tmp_path, monkeypatch)
    clock = iter([1.0, 3.0, 10.0, 14.0])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    started.begin()

    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(module, "run_stream", fail)
    with pytest.raises(OSError):
        started.begin()
    assert started.run.outcome.seconds == 6.0
