"""What an update reads, and when: a session, a graph and a lease stand in for the real ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.trigger import AvailableNow
from headwater.errors import UpdateInProgress
from headwater.graph.update_plan import Selection
from headwater.leases.file_lease import update_lease
from headwater.leases.turn import wait_for_turn
from headwater_spark.execution import update
from headwater_spark.execution.update import UpdateRequest, run_update


class Enough(Exception):
    """Ends the update once the lease is there."""


def test_recorded_batches_are_read_under_the_lease(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """While an update waits, the one before it goes on recording batches: what the log has is read after that one's end."""
    order: list[str] = []

    def last_batches(_folder: object) -> dict[tuple[str, int], int]:
        order.append("the log is read")
        return {}

    @contextmanager
    def lease(*_: object, **__: object) -> Iterator[None]:
        ends = time.monotonic() + 0.3
        while not order and time.monotonic() < ends:
            time.sleep(0.01)
        order.append("the lease is there")
        yield

    @contextmanager
    def resolved(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(manifest=SimpleNamespace(outputs=()))

    def enough(*_: object) -> None:
        ends = time.monotonic() + 5
        while len(order) < 2 and time.monotonic() < ends:
            time.sleep(0.01)
        raise Enough

    monkeypatch.setattr(update, "last_batches", last_batches)
    monkeypatch.setattr(update, "resolved_pipeline", resolved)
    monkeypatch.setattr(update, "start_session", lambda *_: None)
    monkeypatch.setattr(update, "plan_update", lambda *_: None)
    monkeypatch.setattr(update, "refuse_old_names", enough)
    project: Any = SimpleNamespace(
        state_folder=tmp_path,
        lease=lease,
        pipeline_id="p",
        spark_conf={},
        spec=SimpleNamespace(trigger=AvailableNow(), metastore=None),
    )
    with pytest.raises(Enough):
        run_update(project, UpdateRequest(Selection()))
    assert order == ["the lease is there", "the log is read"]


def begun(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: UpdateRequest, waited: Callable[[], object]
) -> list[str]:
    """What happens before the session, while another update has the lease for an hour, or until ``waited`` ends it."""
    order: list[str] = []

    def start_session(*_: object) -> None:
        order.append("session")
        raise Enough

    @contextmanager
    def lease(*_: object) -> Iterator[None]:
        with update_lease(tmp_path, "this one"):
            yield

    def wait(folder: Path, time: timedelta) -> timedelta:
        hours = iter(range(1000))

        def sleep(_: float) -> None:
            order.append("waits")
            waited()

        return wait_for_turn(folder, time, clock=lambda: 300.0 * next(hours), sleep=sleep)

    monkeypatch.setattr(update, "start_session", start_session)
    monkeypatch.setattr(update, "wait_for_turn", wait)
    spec = SimpleNamespace(trigger=AvailableNow())
    project: Any = SimpleNamespace(
        state_folder=tmp_path, lease=lease, pipeline_id="p", spark_conf={}, spec=spec
    )
    with pytest.raises((Enough, UpdateInProgress)) as end:
        run_update(project, request)
    return [*order, type(end.value).__name__]


def test_executors_are_taken_behind_the_other_update(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A scheduled update waits before it has a session: where cores are few, the one that has the lease can use them."""
    scheduled = UpdateRequest(Selection(), "r1")
    with ExitStack() as other:
        other.enter_context(update_lease(tmp_path, "the other one"))
        # A person is refused by the lease itself, at once.
        assert begun(monkeypatch, tmp_path, UpdateRequest(Selection()), other.close) == ["session", "Enough"]
        assert begun(monkeypatch, tmp_path, scheduled, lambda: None) == ["waits", "UpdateInProgress"]
        # YARN does not wait for the session of a driver that it runs.
        with monkeypatch.context() as on_yarn:
            on_yarn.setenv("SPARK_YARN_STAGING_DIR", "hdfs:///staging")
            assert begun(monkeypatch, tmp_path, scheduled, other.close) == ["session", "Enough"]
        assert begun(monkeypatch, tmp_path, scheduled, other.close) == ["waits", "session", "Enough"]
    assert begun(monkeypatch, tmp_path, scheduled, other.close) == ["session", "Enough"]


@pytest.mark.parametrize(
    ("master", "request_id", "in_yarn", "again"),
    [
        ("spark://h:7077", "r1", False, True),
        ("yarn", "r1", False, True),
        ("yarn", "r1", True, False),
        ("local[*]", "r1", False, False),
        ("k8s://h", "r1", False, False),
        ("yarn", None, False, False),
    ],
)
def test_executors_are_given_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, request_id: str | None, in_yarn: bool, again: bool
):  # fmt: skip
    """The second of two that begin side by side ends its application, waits, and begins again with the lease; others wait as they are."""
    order: list[str] = []
    others = ExitStack()

    @contextmanager
    def lease(_: str, wait: timedelta) -> Iterator[str]:
        order.append("asks" if not wait else "waits")
        if wait:
            others.close()
        with update_lease(tmp_path, "this one", wait=wait):
            yield "the lease"
        order.append("lets go")

    def start_session(*_: object) -> Any:
        order.append("session")
        if len(order) == 1:
            others.enter_context(update_lease(tmp_path, "the other one"))
        return SimpleNamespace(sparkContext=SimpleNamespace(master=master))

    @contextmanager
    def resolved(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(manifest=SimpleNamespace(outputs=()))

    def enough(*_: object) -> None:
        order.append("update")
        raise Enough

    if in_yarn:
        monkeypatch.setenv("SPARK_YARN_STAGING_DIR", "hdfs:///staging")
    monkeypatch.setattr(update, "start_session", start_session)
    monkeypatch.setattr(update, "end_session", lambda: order.append("end of the session"))
    monkeypatch.setattr(update, "resolved_pipeline", resolved)
    monkeypatch.setattr(update, "plan_update", lambda *_: None)
    monkeypatch.setattr(update, "_recorded_batches", enough)
    spec = SimpleNamespace(trigger=AvailableNow(), metastore=None)
    project: Any = SimpleNamespace(
        state_folder=tmp_path, lease=lease, pipeline_id="p", spark_conf={}, spec=spec
    )
    with pytest.raises((Enough, UpdateInProgress)):
        run_update(project, UpdateRequest(Selection(), request_id))
    if again:
        assert order == ["session", "asks", "end of the session", "waits", "session", "update"]
    else:
        assert order == (["session", "waits", "update"] if request_id else ["session", "asks"])
