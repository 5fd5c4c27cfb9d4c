"""What an update reads, and when: a session, a graph and a lease stand in for the real ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.trigger import AvailableNow
from headwater.graph.update_plan import Selection
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
    def lease(*_: object) -> Iterator[None]:
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
    monkeypatch.setattr(update, "_lease", lease)
    monkeypatch.setattr(update, "resolved_pipeline", resolved)
    monkeypatch.setattr(update, "start_session", lambda *_: None)
    monkeypatch.setattr(update, "plan_update", lambda *_: None)
    monkeypatch.setattr(update, "refuse_old_names", enough)
    project: Any = SimpleNamespace(
        state_folder=tmp_path,
        pipeline_id="p",
        spark_conf={},
        spec=SimpleNamespace(trigger=AvailableNow(), metastore=None),
    )
    with pytest.raises(Enough):
        run_update(project, UpdateRequest(Selection()))
    assert order == ["the lease is there", "the log is read"]
