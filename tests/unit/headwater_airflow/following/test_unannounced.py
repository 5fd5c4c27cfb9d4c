"""What an update wrote that ended badly is announced by the next one, whoever announces tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline, pipeline

from headwater.errors import FlowInterrupted
from headwater.event_log.details import FlowStatus, UpdateState, create_update, flow_progress, update_progress
from headwater.event_log.writer import EventLogWriter
from headwater_airflow.following.dataset_progress import DatasetProgress
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, WatchedDataset

__all__ = ["pipeline"]
BRONZE = WatchedDataset("bronze", ("bronze",), False, frozenset())
WROTE = {"num_input_rows": 3, "num_output_rows": 3}
NOTHING = {"num_input_rows": 0, "num_output_rows": 0}
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
CLEARED = BEGUN + timedelta(hours=1)


def _update(
    pipeline: Pipeline,
    name: str,
    *flows: tuple[FlowStatus, dict[str, int] | None],
    end: UpdateState | None = UpdateState.COMPLETED,
    together: bool = False,
    request: str | None = None,
    requested_at: datetime | None = BEGUN,
) -> None:
    """An update of the request of its own name, with the records of the flow `bronze`; of a DAG run, unless nobody `requested` it."""
    folder = pipeline.project.state_folder
    with EventLogWriter(folder, "orders", "orders", name, request or f"of {name}") as log:
        created = create_update(announced_together=together, requested_at=requested_at)
        log.emit("create_update", "begun", details=created)
        for status, metrics in flows:
            error = FlowInterrupted("Killed.") if status is FlowStatus.FAILED else None
            version = 7 if status is FlowStatus.COMPLETED else None
            details = flow_progress(status, metrics=metrics, version=version)
            log.emit("flow_progress", "m", flow="bronze", dataset="bronze", details=details, error=error)
        if end is not None:
            log.emit("update_progress", "ended", details=update_progress(end))


def _ending(pipeline: Pipeline, name: str) -> tuple[Ending, int, str]:
    progress = DatasetProgress(pipeline.project, BRONZE, f"of {name}")
    verdict = progress.look(UpdateOutcome.SUCCEEDED)
    assert verdict is not None
    return verdict.ending, verdict.output_rows, verdict.update_id


@pytest.mark.parametrize("end", [UpdateState.FAILED, UpdateState.CANCELED, None], ids=str)
def test_rows_of_an_update_that_was_killed_are_announced_by_the_next(
    pipeline: Pipeline, end: UpdateState | None
):
    """The task of the table was red, so nobody was woken; the next update finds nothing new in it."""
    ends = {UpdateState.FAILED: FlowStatus.FAILED, UpdateState.CANCELED: FlowStatus.STOPPED}
    last = [(ends[end], None)] if end else []
    _update(pipeline, "u1", (FlowStatus.RUNNING, WROTE), *last, end=end)
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u2") == (Ending.UPDATED, 3, "u1")
    _update(pipeline, "u3", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u3")[0] is Ending.UNCHANGED


def test_a_table_that_was_done_when_its_update_failed_is_not_announced_again(pipeline: Pipeline):
    """Its own task was green, and woke whoever waits for it."""
    _update(pipeline, "u1", (FlowStatus.COMPLETED, WROTE), end=UpdateState.FAILED)
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u2")[0] is Ending.UNCHANGED


def test_one_that_would_have_been_announced_with_all_others_is(pipeline: Pipeline):
    """With one task for all tables nothing was announced; not after two bad ends either, and though each table has its task now."""
    _update(pipeline, "u1", (FlowStatus.COMPLETED, WROTE), end=UpdateState.FAILED, together=True)
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING), end=UpdateState.FAILED, together=True)
    _update(pipeline, "u3", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u3") == (Ending.UPDATED, 3, "u1")


def test_updates_that_leave_a_table_out_do_not_hide_its_rows(pipeline: Pipeline):
    """A run of other tables in between says nothing about this one."""
    _update(pipeline, "u1", (FlowStatus.RUNNING, WROTE), (FlowStatus.FAILED, None), end=UpdateState.FAILED)
    _update(pipeline, "u2", (FlowStatus.EXCLUDED, None))
    _update(pipeline, "u3", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u3") == (Ending.UPDATED, 3, "u1")


def test_a_cleared_run_does_not_hide_what_came_between_its_starts(pipeline: Pipeline):
    """The updates of a run that is cleared stand before and behind those of others."""
    _update(pipeline, "u1", (FlowStatus.COMPLETED, NOTHING), request="of u3")
    _update(pipeline, "u2", (FlowStatus.RUNNING, WROTE), (FlowStatus.FAILED, None), end=UpdateState.FAILED)
    _update(pipeline, "u3", (FlowStatus.COMPLETED, NOTHING), requested_at=CLEARED)
    assert _ending(pipeline, "u3") == (Ending.UPDATED, 3, "u2")


def test_what_a_run_announced_before_it_was_cleared_is_not_announced_again(pipeline: Pipeline):
    """The cleared run finds nothing new: its rows are those of its present start, not of the one that ended well."""
    _update(pipeline, "u1", (FlowStatus.RUNNING, WROTE), (FlowStatus.COMPLETED, None), request="of u2")
    assert _ending(pipeline, "u2") == (Ending.UPDATED, 3, "u1")
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING), requested_at=CLEARED)
    assert _ending(pipeline, "u2")[0] is Ending.UNCHANGED


def test_what_a_run_wrote_and_did_not_announce_before_it_was_cleared_is(pipeline: Pipeline):
    """It failed, and finds nothing new after it was cleared: whoever waits is woken for what the failed start wrote."""
    wrote = (FlowStatus.RUNNING, WROTE)
    _update(pipeline, "u1", wrote, (FlowStatus.FAILED, None), end=UpdateState.FAILED, request="of u2")
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING), requested_at=CLEARED)
    assert _ending(pipeline, "u2") == (Ending.UPDATED, 3, "u1")


def test_a_table_that_a_cleared_run_leaves_out_as_done_keeps_its_end(pipeline: Pipeline):
    """A run that failed goes on where it stood: the table was done before, and its task, cleared along, is green."""
    _update(pipeline, "u1", (FlowStatus.COMPLETED, WROTE), end=UpdateState.FAILED, request="of u2")
    _update(pipeline, "u2", (FlowStatus.EXCLUDED, None), requested_at=CLEARED)
    assert _ending(pipeline, "u2") == (Ending.UPDATED, 3, "u1")


@pytest.mark.parametrize("failed", [True, False], ids=["after one that failed", "by itself"])
def test_rows_that_came_by_the_command_line_are_announced_by_the_next_run(pipeline: Pipeline, failed: bool):
    """No DAG run asked for that update, so nobody was woken, neither for its rows nor for those before."""
    if failed:
        _update(
            pipeline, "u0", (FlowStatus.RUNNING, WROTE), (FlowStatus.FAILED, None), end=UpdateState.FAILED
        )
    _update(pipeline, "u1", (FlowStatus.RUNNING, WROTE), (FlowStatus.COMPLETED, None), requested_at=None)
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING), requested_at=None)
    _update(pipeline, "u3", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u3") == (Ending.UPDATED, 6 if failed else 3, "u1")
    _update(pipeline, "u4", (FlowStatus.COMPLETED, NOTHING))
    assert _ending(pipeline, "u4")[0] is Ending.UNCHANGED


def test_without_a_bad_end_nothing_more_is_read(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """The usual case costs one look at the newest updates, for all tables together."""
    _update(pipeline, "u1", (FlowStatus.COMPLETED, WROTE))
    _update(pipeline, "u2", (FlowStatus.COMPLETED, NOTHING))
    monkeypatch.setattr("headwater_airflow.following.unannounced.flow_results", None)
    assert _ending(pipeline, "u2")[0] is Ending.UNCHANGED
