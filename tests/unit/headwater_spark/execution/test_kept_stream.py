"""A stream that does not end: when its readers may start, when it can be stopped at once, and what is saved meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of

from headwater.errors import RowsNotConserved
from headwater_spark.execution import kept_stream, real_time
from headwater_spark.execution.continuous_run import ContinuousRun
from headwater_spark.execution.kept_stream import KeptStream


class Stream:
    """A query whose status and batches are told."""

    def __init__(self, tmp_path, monkeypatch, spark_conf=None) -> None:
        one = flow(spark_conf=spark_conf or {})
        self.context = context_of(tmp_path, dataset(), flows=(one,))
        self.context.continuous = ContinuousRun({"orders": 5})
        self.query = SimpleNamespace(status={"message": "Initializing sources", "isTriggerActive": False})
        self.batches = SimpleNamespace(all_recorded=True, check_conservation=lambda: None)
        self.saved: list[int] = []
        self.run = run_of(self.context, one=one)
        monkeypatch.setattr(kept_stream, "clean_sources", lambda _: self.saved.append(-1))
        self.kept = KeptStream(
            self.run, self.query, self.batches, lambda: self.saved.append(self.run.outcome.batches)
        )

    def status(self, message: str, *, active: bool = False) -> None:
        self.query.status = {"message": message, "isTriggerActive": active}

    @property
    def records(self) -> list[str]:
        return [more["details"]["flow_progress"]["status"] for _, _, more in self.context.events.emitted]


@pytest.fixture
def stream(tmp_path, monkeypatch) -> Stream:
    return Stream(tmp_path, monkeypatch)


def test_it_runs_when_it_has_looked(stream):
    """Not while it begins, and not within its first batch: when that is recorded, or nothing was there. It is said once."""
    for message, active in (("Initializing sources", False), ("Processing new data", True)):
        stream.status(message, active=active)
        stream.kept.look()
    assert (stream.records, stream.context.continuous.is_readable("orders")) == ([], False)
    stream.context.continuous.restarts("orders", 2)
    stream.status("Waiting for data to arrive")
    stream.kept.look()
    stream.kept.look()
    assert stream.records == ["RUNNING"]
    shared = stream.context.continuous
    assert (shared.is_readable("orders"), shared.runs("orders"), shared.restarting) == (True, True, {})


def test_in_real_time_mode_it_runs_when_it_has_run_for_a_while(tmp_path, monkeypatch):
    """It never waits, and its first batch lasts minutes."""
    fast = Stream(tmp_path, monkeypatch, {"pipelines.trigger": "RealTime"})
    fast.query.isActive = True
    fast.status("Processing new data", active=True)
    fast.kept.look()
    assert fast.records == []
    monkeypatch.setattr(real_time, "_RUNS_WELL_SECONDS", 0.0)
    fast.kept.look()
    assert fast.records == ["RUNNING"]
    assert "commits its position every 5 s" in fast.context.events.emitted[-1][1]


def test_a_batch_is_a_look(stream):
    """However busy it is."""
    stream.status("Processing new data", active=True)
    stream.run.outcome.batches = 1
    stream.kept.look()
    assert stream.context.continuous.runs("orders")


def test_it_is_stopped_at_once_only_where_it_waits(stream):
    """Within a trigger, before its last batch has a record, and in an update that ends by itself, a stop waits for the batch."""
    stream.status("Waiting for next trigger")
    assert stream.kept.is_idle()
    stream.status("Waiting for next trigger", active=True)
    assert not stream.kept.is_idle()
    stream.status("Waiting for next trigger")
    stream.batches.all_recorded = False
    assert not stream.kept.is_idle()
    stream.batches.all_recorded = True
    stream.context.continuous = None
    assert not stream.kept.is_idle()


def test_its_position_is_saved_now_and_then(stream, monkeypatch):
    """Once a minute, if it has written since; with it, sources are cleaned."""
    clock = iter([0.0, 30.0, 61.0, 61.0, 122.0, 122.0, 183.0, 183.0])
    monkeypatch.setattr(kept_stream, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    kept = KeptStream(
        stream.run, stream.query, stream.batches, lambda: stream.saved.append(stream.run.outcome.batches)
    )
    kept.look()
    stream.run.outcome.batches = 3
    kept.look()
    assert stream.saved == [3, -1]
    kept.look()
    assert stream.saved == [3, -1]
    stream.run.outcome.batches = 4
    kept.look()
    assert stream.saved == [3, -1, 4, -1]


def test_rows_that_are_not_accounted_for_are_seen_while_it_runs(stream):
    """Nobody waits for the end of the query."""

    def lost() -> None:
        raise RowsNotConserved("one row")

    stream.batches.check_conservation = lost
    with pytest.raises(RowsNotConserved):
        stream.kept.look()
