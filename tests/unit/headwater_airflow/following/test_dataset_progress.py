"""Which updates of a request are of the run's present start."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater.metrics.conftest import Pipeline, pipeline

from headwater.event_log.details import FlowStatus, create_update, flow_progress
from headwater.event_log.event import event_table
from headwater.event_log.update_summary import UpdateSummary
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.following.dataset_progress import (
    DatasetProgress,
    is_of_another_start,
    results_before_newest,
)
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, WatchedDataset
from headwater_airflow.following.request import request_id
from headwater_airflow.following.update_watch import request_results

__all__ = ["pipeline"]
BEGUN = datetime(2026, 1, 1, 3, 4, 5, 678901, UTC)
TIMES = st.datetimes(
    min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001 - it gets one
)  # fmt: skip


@given(of_driver=TIMES, requested=TIMES, since=TIMES, ended=st.none() | TIMES)
def test_no_clock_of_a_driver_matters(of_driver, requested, since, ended):
    """Only the run's start decides: not when the driver began or ended, by whatever clock."""
    update = UpdateSummary("u", "r", "RUNNING", of_driver, ended, "", requested)
    assert is_of_another_start(update, since) == (requested != since)
    assert not is_of_another_start(update, requested)


@pytest.mark.parametrize(("seconds", "old"), [(-1, True), (0, False), (1, False)])
def test_an_older_log_is_judged_by_its_times(seconds: int, old: bool):
    """Without a start in its record, an update that began before the run is an old one, whether it ended or not."""
    update = UpdateSummary("u", "r", "RUNNING", BEGUN + timedelta(seconds=seconds), None, "")
    assert is_of_another_start(update, BEGUN) is old


def test_a_cleared_run_whose_update_does_not_begin_has_no_green_table(pipeline: Pipeline):
    """Its connection is gone, say: the table does not take the former success of the run for its own, and announces nothing."""
    _completed(pipeline, "u1", BEGUN - timedelta(hours=1))
    watched = WatchedDataset("bronze", ("bronze",), False, frozenset())
    verdict = DatasetProgress(pipeline.project, watched, "r1", BEGUN).look(UpdateOutcome.FAILED)
    assert verdict is not None
    assert verdict.ending is Ending.FAILED


def test_a_former_driver_that_writes_late_is_not_believed(pipeline: Pipeline):
    """Its records appear while the task is watching already; those of the run's own update are taken."""
    watched = WatchedDataset("bronze", ("bronze",), False, frozenset())
    progress = DatasetProgress(pipeline.project, watched, "r1", BEGUN)
    assert progress.look(UpdateOutcome.UNFINISHED) is None
    _completed(pipeline, "u1", BEGUN - timedelta(hours=1))
    assert progress.look(UpdateOutcome.UNFINISHED) is None
    _completed(pipeline, "u2", BEGUN)
    verdict = progress.look(UpdateOutcome.UNFINISHED)
    assert verdict is not None
    assert (verdict.ending, verdict.update_id) == (Ending.UPDATED, "u2")


def test_each_update_that_appears_is_looked_at(pipeline: Pipeline):
    """A second former driver may write after the first: it is not believed either."""
    watched = WatchedDataset("bronze", ("bronze",), False, frozenset())
    progress = DatasetProgress(pipeline.project, watched, "r1", BEGUN)
    for number in (1, 2):
        _completed(pipeline, f"u{number}", BEGUN - timedelta(hours=number))
        assert progress.look(UpdateOutcome.UNFINISHED) is None


def test_what_updates_before_the_newest_did(pipeline: Pipeline):
    """Those of this start of the run alone, and not the newest one."""
    for name, at in (("u0", BEGUN - timedelta(hours=1)), ("u1", BEGUN), ("u2", BEGUN)):
        _completed(pipeline, name, at)
    assert [one.update_id for one in results_before_newest(pipeline.project, "r1", BEGUN)] == ["u1"]
    assert results_before_newest(pipeline.project, "r2", BEGUN) == []


def test_a_log_that_was_made_anew(pipeline: Pipeline):
    """Its versions count from the beginning: what was read of the former log is not taken for what it says."""
    state_folder = pipeline.project.state_folder
    _completed(pipeline, "u1", BEGUN)
    assert [one.update_id for one in request_results(state_folder, "r1")] == ["u1"]
    shutil.rmtree(event_table(state_folder))
    assert request_results(state_folder, "r1") == ()


def test_what_names_a_request():
    """The run of a DAG, and the part of the pipeline that it is about; the same for each attempt."""
    ids = [
        request_id("a", "b"),
        request_id("a", "c"),
        request_id("b", "b"),
        request_id("a", "b", "t"),
        request_id("a", "b", "u"),
    ]
    assert len(set(ids)) == 5
    assert request_id("a", "b", "t") == request_id("a", "b", "t")


def _completed(pipeline: Pipeline, update_id: str, requested_at: datetime) -> None:
    project = pipeline.project
    rows = {"num_input_rows": 1, "num_output_rows": 1}
    with EventLogWriter(project.state_folder, "orders", "orders", update_id, "r1") as log:
        log.emit("create_update", "", details=create_update(requested_at=requested_at))
        body = flow_progress(FlowStatus.COMPLETED, metrics=rows)
        log.emit("flow_progress", "", flow="bronze", dataset="bronze", epoch=0, details=body)
