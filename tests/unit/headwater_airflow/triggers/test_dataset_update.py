"""How the task of a table ends in the triggerer, and which tasks of a run are over."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.triggers.base import TaskSkippedEvent, TaskSuccessEvent

from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict
from headwater_airflow.triggers import dataset_update as module
from headwater_airflow.triggers.dataset_update import (
    DatasetUpdateTrigger,
    tasks_that_are_over,
    update_outcome,
)


def test_only_what_changed_or_failed_needs_a_worker():
    """A table without news is green and one that was left out is skipped, here and now; the others go back to the operator."""
    assert isinstance(module._event(Verdict(Ending.UNCHANGED, "")), TaskSuccessEvent)
    assert isinstance(module._event(Verdict(Ending.LEFT_OUT, "")), TaskSkippedEvent)
    for ending in (Ending.UPDATED, Ending.FAILED):
        verdict = Verdict(ending, "so", version=3, of_updates=["u1"])
        event = module._event(verdict)
        assert type(event).__name__ == "TriggerEvent"
        assert Verdict.of_payload(event.payload) == verdict


def states(monkeypatch: pytest.MonkeyPatch, of_tasks: dict[str, Any]) -> None:
    """Let Airflow have these states of a run's tasks."""
    monkeypatch.setattr(
        module.RuntimeTaskInstance, "get_task_states", lambda **_: {"run": of_tasks} if of_tasks else {}
    )


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("success", UpdateOutcome.SUCCEEDED),
        ("failed", UpdateOutcome.FAILED),
        ("upstream_failed", UpdateOutcome.FAILED),
        ("skipped", UpdateOutcome.NOT_RUN),
        ("removed", UpdateOutcome.NOT_RUN),
        ("running", UpdateOutcome.UNFINISHED),
        ("up_for_retry", UpdateOutcome.UNFINISHED),
        (None, UpdateOutcome.UNFINISHED),
    ],
)
def test_how_far_the_update_is(monkeypatch: pytest.MonkeyPatch, state: str | None, outcome: UpdateOutcome):
    """By the state of the task that runs it; one that waits for a retry has not ended."""
    states(monkeypatch, {"update": state})
    assert update_outcome("shop", "run") is outcome


def test_tasks_that_have_ended(monkeypatch: pytest.MonkeyPatch):
    """However they have ended; what runs, or is still to run, is none of them."""
    states(
        monkeypatch,
        {
            "a": "success", "b": "failed", "c": "skipped", "d": "upstream_failed", "e": "removed",
            "f": "running", "g": None, "h": "up_for_retry", "i": "deferred",
        },
    )  # fmt: skip
    assert tasks_that_are_over("shop", "run", list("abcdefghi")) == set("abcde")
    states(monkeypatch, {})
    assert tasks_that_are_over("shop", "run", ["a"]) == set()


def test_a_trigger_is_stored_with_all_that_it_needs():
    """Whatever triggerer it is started in again, it follows the same run."""
    trigger = DatasetUpdateTrigger("shop", "orders", "dag", "run", "2026-01-01T00:00:00+00:00", 0.5)
    name, arguments = trigger.serialize()
    assert name == "headwater_airflow.triggers.dataset_update.DatasetUpdateTrigger"
    again = DatasetUpdateTrigger(**arguments)
    assert again.serialize() == (name, arguments)
    assert (again._run(), again._since().isoformat(), again.poll_seconds) == (
        ("dag", "run"),
        "2026-01-01T00:00:00+00:00",
        0.5,
    )
