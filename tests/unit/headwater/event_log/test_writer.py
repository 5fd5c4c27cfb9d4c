"""When records that wait are appended."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.event_log import writer as module
from headwater.event_log.writer import EventLogWriter


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A writer without its thread that has appended at second 100, and whose records of batches may wait for 5 seconds."""
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: one.now))
    one: Any = object.__new__(EventLogWriter)
    one._lock, one._appended_at, one._flush_seconds, one.now = threading.Lock(), 100.0, 5.0, 100.0
    one._buffer = []
    return one


def record(flow: str, batch: int | None = 0, kind: str = "flow_progress") -> Any:
    """A record of a flow; of a batch unless None."""
    return SimpleNamespace(origin=SimpleNamespace(flow_id=flow, batch_id=batch), event_type=kind)


def test_records_of_batches_wait_for_their_time_and_no_longer(log: Any):
    """At the second that they may wait until, they are appended."""
    log._buffer = [record("a")]
    log.now = 104.9
    assert not log._is_due()
    log.now = 105.0
    assert log._is_due()


def test_one_record_that_is_of_no_batch_takes_the_others_along(log: Any):
    """A start or an end is waited for by somebody; alone, or among batches."""
    log._buffer = [record("a"), record("a", None), record("b")]
    assert log._is_due()


def test_many_batches_of_one_flow_do_not_wait(log: Any):
    """Five of one flow: more would be evaluated again after a crash. Those of others do not count, nor what Spark reports beside."""
    log._buffer = [record("a", n) for n in range(4)] + [record("b", n) for n in range(4)]
    log._buffer += [record("a", 5, "stream_progress")] * 9
    assert not log._is_due()
    log._buffer.append(record("b", 4))
    assert log._is_due()
