"""Which updates of a request are of the run's present start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater.metrics.conftest import Pipeline, pipeline

from headwater.event_log.details import FlowStatus, create_update, flow_progress
from headwater.event_log.update_summary import UpdateSummary
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.following.dataset_progress import DatasetProgress, is_of_another_start
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, WatchedDataset

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


def _completed(pipeline: Pipeline, update_id: str, requested_at: datetime) -> None:
    project = pipeline.project
    rows = {"num_input_rows": 1, "num_output_rows": 1}
    with EventLogWriter(project.state_folder, "orders", "orders", update_id, "r1") as log:
        log.emit("create_update", "", details=create_update(requested_at=requested_at))
        body = flow_progress(FlowStatus.COMPLETED, metrics=rows)
        log.emit("flow_progress", "", flow="bronze", dataset="bronze", epoch=0, details=body)
