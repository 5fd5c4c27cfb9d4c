"""A continuous driver is ended when nothing comes from it any more, and only then."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.headwater.metrics.conftest import pipeline

from headwater.event_log.writer import EventLogWriter
from headwater_airflow.driver import health as module_of_health
from headwater_airflow.driver.health import health, watched

__all__ = ["pipeline"]
NOW = datetime.now(UTC)


def beat(project, request: str = "r1", message: str = "alive") -> None:
    with EventLogWriter(project.state_folder, "p", "p", "u", request) as log:
        log.emit("operation_progress", message, details={})


def test_silence_counts_from_the_newest_record(pipeline):
    """Records of another request, or from before the driver was started, are no sign of life of this one."""
    project = pipeline.project
    assert health(project, "r1", NOW - timedelta(seconds=30), NOW).seconds == 30
    beat(project)
    beat(project, "r2")
    state = health(project, "r1", NOW - timedelta(minutes=1), datetime.now(UTC) + timedelta(seconds=9))
    assert 9 <= state.seconds < 60
    assert "alive" in str(state)
    assert [state.is_silent(limit) for limit in (5, 60)] == [True, False]
    later = datetime.now(UTC) + timedelta(hours=1)
    assert health(project, "r1", later, later + timedelta(seconds=7)).seconds == 7


@pytest.mark.parametrize(("limit", "ends"), [("0.3", True), ("60", False)])
def test_a_silent_driver_is_ended_once(pipeline, monkeypatch, limit, ends):
    """With nothing for longer than the limit the driver is ended; a younger one is left alone."""
    monkeypatch.setenv("HEADWATER_HEALTH_SECONDS", "0.05")
    monkeypatch.setenv("HEADWATER_SILENCE_SECONDS", limit)
    ended = threading.Event()
    times = []

    def end() -> None:
        times.append(1)
        ended.set()

    with watched(pipeline.project, "r1", end):
        assert ended.wait(5 if ends else 0.6) is ends
    assert len(times) == ends


def test_a_log_that_can_not_be_read_ends_nothing(pipeline, monkeypatch, caplog):
    """The driver's own end is seen in any case."""
    monkeypatch.setenv("HEADWATER_HEALTH_SECONDS", "0.05")
    monkeypatch.setenv("HEADWATER_SILENCE_SECONDS", "0.1")
    monkeypatch.setattr("headwater_airflow.driver.health.events", lambda *_, **__: 1 / 0)
    ended = threading.Event()
    with watched(pipeline.project, "r1", ended.set):
        assert not ended.wait(0.5)
    assert "can't be read for now" in caplog.text


def test_no_time_at_all_is_no_time(monkeypatch):
    """Zero seconds would end every driver at once: the usual time counts, as where it is no number."""
    for text, seconds in (("0", 30.0), ("-1", 30.0), ("soon", 30.0), ("0.5", 0.5)):
        monkeypatch.setenv("HEADWATER_TEST_SECONDS", text)
        assert module_of_health._seconds("HEADWATER_TEST_SECONDS", 30.0) == seconds
