"""Whether Spark has to be started, where the question itself fails."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline, done, pipeline

from headwater.errors import InvalidSpec
from headwater.event_log.reader import latest_update
from headwater.updates import news
from headwater_airflow.driver.no_news import report_without_news
from headwater_airflow.forms.selection import Selection

__all__ = ["done", "pipeline"]


def test_without_news_there_is_a_report(done: Pipeline, caplog: pytest.LogCaptureFixture):
    """Nothing has moved: the update is recorded without Spark, and nothing is warned of."""
    report = report_without_news(done.project, Selection(), "r1")
    assert report is not None
    assert report["state"] == "COMPLETED"
    assert not caplog.records


def test_the_record_has_the_start_of_the_run(done: Pipeline):
    """A cleared run that finds nothing new is recognised by its earlier updates like one that ran."""
    begun = datetime(2026, 1, 1, 3, 4, 5, 678901, UTC)
    assert report_without_news(done.project, Selection(), "r1", begun) is not None
    newest = latest_update(done.project.state_folder)
    assert newest is not None
    assert (newest.request_id, newest.requested_at) == ("r1", begun)


@pytest.mark.parametrize(
    "error", [RuntimeError("a client's own"), OSError("Stale file handle"), KeyError("x")]
)
def test_an_error_that_nobody_foresaw_starts_spark(
    done: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
):
    """The task does not fail by it: there may be news, and the log warns of what went wrong."""

    def flow_lag(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(news, "flow_lag", flow_lag)
    with caplog.at_level(logging.WARNING):
        assert report_without_news(done.project, Selection(), "r1") is None
    assert type(error).__name__ in caplog.text
    assert "Starting Spark for orders" in caplog.text


def test_an_error_that_says_what_to_do_stays_one(done: Pipeline):
    """A manifest that this version can't read is not overwritten by starting Spark all the same."""
    file = done.project.state_folder / "manifest.json"
    file.write_text("{}")
    with pytest.raises(InvalidSpec):
        report_without_news(done.project, Selection(), "r1")
