"""How the task of a table ends on a worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    TaskDeferred,
)

from headwater.errors import InvalidSpec
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict
from headwater_airflow.operators import dataset_update as module
from headwater_airflow.operators.dataset_update import OF_UPDATES, DatasetUpdateOperator

UPDATED = Verdict(
    Ending.UPDATED, "The table is up to date.", output_rows=3, version=4, update_id="u1", of_updates=["u1"]
)
CONTEXT = {
    "ti": SimpleNamespace(dag_id="shop", run_id="r"),
    "dag_run": SimpleNamespace(start_date=None, triggering_user_name=None),
}


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The task of ``orders``; ``events``: what was announced."""
    one: Any = DatasetUpdateOperator(task_id="orders", pipeline="shop", dataset="orders", asset=None)
    events: list[Any] = []
    monkeypatch.setattr(module, "pipeline_project", lambda _: "project")
    monkeypatch.setattr(module, "event_details", lambda *_: {"columns": 2})
    monkeypatch.setattr(module, "announce", lambda _, __, *of: events.extend(of))
    monkeypatch.setattr(module, "update_outcome", lambda *_: UpdateOutcome.UNFINISHED)
    monkeypatch.delenv("AIRFLOW_TEST_MODE", raising=False)
    return SimpleNamespace(task=one, events=events, looks=lambda look: look_of(monkeypatch, look))


def look_of(monkeypatch: pytest.MonkeyPatch, look: Any) -> None:
    """Let a look at the event log give this."""

    def opened(*_: Any) -> Any:
        if isinstance(look, Exception):
            raise look
        return SimpleNamespace(look=lambda _: look, news=list)

    monkeypatch.setattr(module.DatasetProgress, "open", opened)


@pytest.mark.parametrize(
    ("ending", "error"), [(Ending.FAILED, AirflowFailException), (Ending.LEFT_OUT, AirflowSkipException)]
)
def test_a_table_that_failed_or_was_left_out(task: Any, ending: Ending, error: type[Exception]):
    """Red, and not tried again by itself, or skipped; nobody is woken."""
    with pytest.raises(error, match="why"):
        task.task.resume(CONTEXT, Verdict(ending, "why").payload())
    assert task.events == []


@pytest.mark.parametrize("ending", [Ending.UPDATED, Ending.UNCHANGED])
def test_a_table_that_is_done(task: Any, ending: Ending):
    """Whoever waits for it is woken with its rows, version and update; the result says which updates it speaks for."""
    verdict = Verdict(ending, "", output_rows=3, version=4, update_id="u1", of_updates=["u1"])
    result = task.task.resume(CONTEXT, verdict.payload())
    assert task.events == [(verdict, {"columns": 2})]
    assert (result["rows"], result["version"], result[OF_UPDATES]) == (3, 4, ["u1"])


def test_an_end_that_the_log_has_needs_no_waiting(task: Any):
    """The first look is made at once."""
    task.looks(UPDATED)
    assert task.task.execute(CONTEXT)["update_id"] == "u1"


@pytest.mark.parametrize("look", [None, StoreUnreachable("Away.")])
def test_what_has_not_ended_is_waited_for(task: Any, look: Any):
    """In the triggerer; a log that can't be read now is looked at again there."""
    task.looks(look)
    with pytest.raises(TaskDeferred):
        task.task.execute(CONTEXT)


def test_a_table_that_there_is_not_any_more(task: Any):
    """No look will find it: the task fails at once."""
    task.looks(InvalidSpec("There is no such table."))
    with pytest.raises(AirflowFailException, match="no such table"):
        task.task.execute(CONTEXT)


def test_tasks_that_are_tested(task: Any, monkeypatch: pytest.MonkeyPatch):
    """One after the other, a task comes again later; alone, there is no update that it could follow."""
    task.looks(None)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    run = SimpleNamespace(start_date=None, triggering_user_name="dag_test")
    with pytest.raises(AirflowRescheduleException):
        task.task.execute({**CONTEXT, "dag_run": run})
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    with pytest.raises(AirflowFailException, match="airflow tasks test"):
        task.task.execute(CONTEXT)
