"""The task of a table, driven against event logs that the real writer wrote."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    TaskDeferred,
)
from airflow.triggers.base import TaskSkippedEvent, TaskSuccessEvent
from tests.dags.pipeline_folder import UpdateLog

from headwater.errors import ExpectationViolated, FlowInterrupted
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.dag import PipelineDag
from headwater_airflow.following import update_watch
from headwater_airflow.following.dataset_verdict import UpdateOutcome
from headwater_airflow.following.request import request_id
from headwater_airflow.roots import pipeline_project
from headwater_airflow.triggers.dataset_update import DatasetUpdateTrigger

RUN = "scheduled__1"


class TaskStates:
    """Stands for the metadata database: how the task `update` is doing."""

    def __init__(self) -> None:
        self.outcome = UpdateOutcome.UNFINISHED
        self.asked = 0

    def __call__(self, dag_id, run_id):
        self.asked += 1
        return self.outcome


@pytest.fixture
def update(monkeypatch):
    """The state of the task `update`, still at work."""
    states = TaskStates()
    monkeypatch.setattr("headwater_airflow.triggers.dataset_update.update_outcome", states)
    monkeypatch.setattr("headwater_airflow.operators.dataset_update.update_outcome", states)
    return states


@pytest.fixture
def log(medallion):
    """The first attempt of the run."""
    attempt = UpdateLog(medallion, request_id("medallion", RUN))
    yield attempt
    attempt.close()


def first_event(dataset="silver", seconds=10, **meanwhile):
    """Run the trigger until it fires, with functions called after some seconds."""
    trigger = DatasetUpdateTrigger("medallion", dataset, poll_seconds=0.05)
    trigger.task_instance = SimpleNamespace(dag_id="medallion", run_id=RUN, task_id=dataset)
    path, arguments = trigger.serialize()
    assert path == "headwater_airflow.triggers.dataset_update.DatasetUpdateTrigger"
    assert DatasetUpdateTrigger(**arguments).serialize() == (path, arguments)
    return asyncio.run(asyncio.wait_for(anext(trigger.run()), seconds))


def later(seconds, call, *arguments, **named):
    timer = threading.Timer(seconds, call, arguments, named)
    timer.start()
    return timer


def operator(dataset="silver"):
    return PipelineDag("medallion").get_task(dataset)


class OutletEvents(dict):
    def __missing__(self, key):
        return self.setdefault(key, SimpleNamespace(extra={}))


def context(user=None):
    return {
        "ti": SimpleNamespace(dag_id="medallion", run_id=RUN),
        "dag_run": SimpleNamespace(triggering_user_name=user, start_date=None),
        "outlet_events": OutletEvents(),
    }


def test_the_trigger_fires_when_its_table_is_done(log, update):
    """Other tables and unfinished states do not fire it; the event has rows, drops and version."""
    log.completed("bronze")
    log.flow("silver", FlowStatus.RUNNING, metrics={"num_input_rows": 4, "num_output_rows": 3})
    timer = later(0.4, log.completed, "silver", rows=3, version=9)
    event = first_event()
    timer.join()
    assert event.payload["ending"] == "updated"
    assert (event.payload["version"], event.payload["dropped_rows"]) == (9, 1)


def test_a_table_without_news_ends_in_the_triggerer(log, update):
    """No worker is started for a table that did not change."""
    log.completed("silver", rows=0)
    assert isinstance(first_event(), TaskSuccessEvent)


def test_a_table_left_out_is_skipped_in_the_triggerer(log, update):
    """A table behind a failed one ends as skipped once the update is over."""
    log.flow("bronze", FlowStatus.FAILED, error=ExpectationViolated("No."))
    log.flow("silver", FlowStatus.SKIPPED)
    update.outcome = UpdateOutcome.FAILED
    assert isinstance(first_event(), TaskSkippedEvent)


def test_a_retry_is_waited_for_and_ends_well(log, update, medallion):
    """A transient failure keeps the task waiting; the next attempt, under the same request, ends it."""
    log.flow("silver", FlowStatus.FAILED, error=FlowInterrupted("Broker away."), will_retry=True)

    def second_attempt():
        attempt = UpdateLog(medallion, request_id("medallion", RUN), "update-2")
        attempt.flow("silver", FlowStatus.STARTING)
        attempt.completed("silver", rows=5)
        attempt.close()

    timer = later(0.4, second_attempt)
    event = first_event()
    timer.join()
    assert (event.payload["ending"], event.payload["update_id"]) == ("updated", "update-2")


def test_a_final_failure_is_told_while_the_update_goes_on(log, update):
    """The event has the table's own error as soon as it is there."""
    timer = later(0.4, log.flow, "silver", FlowStatus.FAILED, error=ExpectationViolated("Row 7 is bad."))
    event = first_event()
    timer.join()
    assert event.payload["ending"] == "failed"
    assert "Row 7 is bad." in event.payload["message"]


def test_the_trigger_ends_with_an_update_that_died_in_silence(log, update):
    """When the task `update` has failed and the log says nothing, nobody waits on."""
    log.flow("silver", FlowStatus.RUNNING)
    update.outcome = UpdateOutcome.FAILED
    event = first_event()
    assert event.payload["ending"] == "failed"
    assert "see the log of its task" in event.payload["message"]


@pytest.mark.parametrize(
    "away",
    [
        "headwater_airflow.following.dataset_progress.request_results",
        "headwater_airflow.triggers.dataset_update.log_version",
        "headwater_airflow.triggers.dataset_update.update_outcome",
    ],
)
def test_what_is_away_for_a_moment_makes_no_task_red(log, update, monkeypatch, away):
    """The event log or Airflow's API does not answer once: the update goes on, and so do those who follow it."""
    log.completed("silver", rows=3, version=9)
    module, _, name = away.rpartition(".")
    real, failures = getattr(sys.modules[module], name), [StoreUnreachable("The store does not answer.")]

    def once(*arguments):
        if failures:
            raise failures.pop()
        return real(*arguments)

    monkeypatch.setattr(away, once)
    assert first_event().payload["version"] == 9
    assert not failures


def test_an_event_goes_out_though_its_rules_cant_be_read(log, update, monkeypatch):
    """What wakes others must not be lost for what is only told beside."""

    def away(*_):
        raise StoreUnreachable("The store does not answer.")

    log.completed("silver", rows=3, version=2)
    monkeypatch.setattr("headwater_airflow.operators.announcement.update_quality", away)
    task, given = operator(), context()
    task.execute(given)
    (asset,) = task.outlets
    assert (given["outlet_events"][asset].extra["rows"], given["outlet_events"][asset].extra["rules"]) == (
        3,
        {},
    )


def test_the_trigger_starts_before_there_is_a_log(medallion, update):
    """On a pipeline's first update there is no event log yet."""
    attempts = []

    def run():
        attempt = UpdateLog(medallion, request_id("medallion", RUN))
        attempts.append(attempt)
        attempt.completed("silver")
        attempt.close()

    timer = later(0.3, run)
    assert first_event().payload["ending"] == "updated"
    timer.join()


@pytest.mark.parametrize("ahead", [-3600, 0, 3600])
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "killed"])
def test_a_cleared_run_does_not_believe_its_former_success(update, medallion, ahead, ended):
    """Of a table, only what an update of this start did counts, whatever clock its driver has, however the former ended."""
    begun = datetime.now(UTC) + timedelta(seconds=ahead)
    request = request_id("medallion", RUN)
    former = UpdateLog(medallion, request, "update-1", begun - timedelta(seconds=1))
    former.update(UpdateState.RUNNING)
    former.completed("silver", rows=5)
    if ended:
        former.update(UpdateState.COMPLETED)
    former.close()
    given = context()
    given["dag_run"].start_date = begun
    task = operator()
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(given)
    assert deferred.value.trigger.since == begun.isoformat()
    again = UpdateLog(medallion, request, "update-2", begun)
    again.completed("silver", rows=1)
    again.close()
    assert task.execute(given)["update_id"] == "update-2"
    update.outcome = UpdateOutcome.SUCCEEDED
    assert task.execute(given)["rows"] == 1


def test_a_former_update_of_an_older_log_is_told_by_its_time(log, update, medallion):
    """Where `create_update` does not say when the run began, the times of the records decide."""
    log.update(UpdateState.RUNNING)
    log.completed("silver", rows=5)
    given = context()
    given["dag_run"].start_date = datetime.now(UTC) + timedelta(milliseconds=1)
    task = operator()
    with pytest.raises(TaskDeferred):
        task.execute(given)
    time.sleep(0.01)
    again = UpdateLog(medallion, request_id("medallion", RUN), "update-2")
    again.completed("silver", rows=1)
    again.close()
    assert task.execute(given)["update_id"] == "update-2"


def test_other_requests_are_not_ours(medallion, update):
    """The end of the same table in another run does not fire the trigger."""
    other = UpdateLog(medallion, request_id("medallion", "scheduled__2"))
    other.completed("silver")
    other.close()
    with pytest.raises(TimeoutError):
        first_event(seconds=0.6)


def test_waiting_reads_the_log_only_when_it_grows(log, update, monkeypatch):
    """Polls list a folder; the table is read once a version, for all tables of an update together."""
    log.flow("silver", FlowStatus.RUNNING)
    update_watch._seen.clear()
    read = update_watch.events
    reads = []
    monkeypatch.setattr(
        update_watch, "events", lambda *a, **k: reads.append(time.monotonic()) or read(*a, **k)
    )
    for dataset in ("bronze", "silver", "gold"):
        with pytest.raises(TimeoutError):
            first_event(dataset, seconds=0.5)
    assert len(reads) == 1


def test_the_operator_ends_at_once_when_the_log_already_tells(log, update):
    """No deferral when the table is done before the task runs; version, rows and update are in the asset event."""
    log.completed("silver", rows=3, version=2)
    task, given = operator(), context()
    assert task.execute(given)["version"] == 2
    (asset,) = task.outlets
    assert given["outlet_events"][asset].extra == {
        "version": 2,
        "rows": 3,
        "dropped_rows": 1,
        "quarantined_rows": 0,
        "update_id": "update-1",
        "rules": {},
        "spec_hash": pipeline_project("medallion").source_hash(),
    }


def test_a_table_that_did_not_change_makes_no_asset_event(log, update):
    """Success without an outlet: downstream DAGs are not woken for nothing."""
    log.completed("silver", rows=0)
    task = operator()
    task.execute(context())
    assert task.outlets == []


def test_the_operator_fails_with_the_tables_error(log, update):
    """The task is red with the message of its flow, and is not tried again by itself."""
    log.flow("silver", FlowStatus.FAILED, error=ExpectationViolated("Row 7 is bad."))
    log.update(UpdateState.FAILED)
    update.outcome = UpdateOutcome.FAILED
    with pytest.raises(AirflowFailException, match=r"Row 7 is bad\."):
        operator().execute(context())


def test_the_operator_is_skipped_behind_a_failed_table(log, update):
    """A table that was not run since another failed is neither green nor red."""
    log.flow("bronze", FlowStatus.FAILED, error=ExpectationViolated("No."))
    log.flow("silver", FlowStatus.SKIPPED)
    update.outcome = UpdateOutcome.FAILED
    with pytest.raises(AirflowSkipException, match="bronze"):
        operator().execute(context())


def test_the_operator_waits_in_the_triggerer(log, update):
    """With nothing decided, the task defers with a trigger that knows its run."""
    with pytest.raises(TaskDeferred) as deferred:
        operator().execute(context())
    assert deferred.value.trigger.serialize()[1]["run_id"] == RUN
    assert deferred.value.method_name == "resume"


def test_where_tasks_run_one_by_one_the_operator_steps_back(log, update):
    """Under `dag.test` a waiting task would keep the update from ever running."""
    with pytest.raises(AirflowRescheduleException):
        operator().execute(context("dag_test"))


def test_a_table_alone_has_nothing_to_follow(log, update, monkeypatch):
    """`airflow tasks test` runs no update beside it: it would wait for ever."""
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    with pytest.raises(AirflowFailException, match="airflow dags test"):
        operator().execute(context())


def test_a_resumed_task_concludes_with_what_the_trigger_found(log, update):
    """The event is enough: no log is read again."""
    log.completed("silver", rows=3, version=2)
    event = first_event()
    given = context()
    assert operator().resume(given, event.payload)["rows"] == 3


def test_a_table_that_the_manifest_lost_is_told(log, update, roots):
    """A manifest without the table ends the task with a sentence instead of waiting."""
    task = operator()
    task.dataset = "renamed"
    with pytest.raises(AirflowFailException, match="does not have the table 'renamed'"):
        task.execute(context())
