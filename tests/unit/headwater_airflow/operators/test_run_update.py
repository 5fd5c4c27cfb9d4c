"""How the task of an update counts its attempts, and what it makes of a driver's end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.errors import InvalidSpec, UnknownDataset
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.driver.verdict import Failure
from headwater_airflow.operators import run_update as module
from headwater_airflow.operators.run_update import RunUpdateOperator

PROJECT: Any = SimpleNamespace(folder="shop", state_folder="state")
REPORT = {"state": "COMPLETED", "flows": []}


class Driver:
    """A driver that has ended."""

    def __init__(self, code: int | None = 0, report: Any = None) -> None:
        self.exit_code, self.report, self.stops = code, SimpleNamespace(content=report), 0

    def stop(self) -> None:
        self.stops += 1

    def wait_for_last_words(self) -> None:
        """It has none."""


@pytest.fixture
def task() -> RunUpdateOperator:
    """The task ``update`` of a pipeline."""
    return RunUpdateOperator(task_id="update", pipeline="shop")


@pytest.mark.parametrize(
    ("attempt", "state", "first"),
    [
        (1, "COMPLETED", 1),
        (3, "COMPLETED", 3),
        (3, "FAILED", 1),
        (3, "CANCELED", 1),
        (3, None, 3),
        (2, "", 1),
    ],
)
def test_an_attempt_after_a_success_is_a_first_one(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, attempt: int, state: str | None, first: int
):
    """Somebody has cleared the run: its tables are not done because they were before."""
    update = SimpleNamespace(state="COMPLETED" if state is None else state) if state != "" else None
    monkeypatch.setattr(module, "newest_update", lambda *_: update)
    assert task._first_attempt(PROJECT, "r1", attempt) == first


@pytest.mark.parametrize("transient", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("silent", [True, False])
def test_a_failure_is_retried_where_that_can_help(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, transient: bool, last: bool, silent: bool
):
    """A driver that could not report its end gets one in the event log; whether another attempt comes stands there."""
    ends: list[bool] = []
    monkeypatch.setattr(module, "newest_update", lambda *_: None)
    monkeypatch.setattr(module, "record_silent_end", lambda *_, will_retry: ends.append(will_retry))
    failure = Failure("It was killed.", transient=transient, silent=silent)
    with pytest.raises(AirflowException, match=r"It was killed\.") as raised:
        task._raise_failure(failure, PROJECT, "r1", last, ValueError("cause"))
    assert isinstance(raised.value, AirflowFailException) is not transient
    assert ends == ([transient and not last] if silent else [])


def test_whose_end_is_not_in_the_log_writes_none(monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator):
    """A killed backfill leaves no update to close."""
    monkeypatch.setattr(task, "runs_updates", False, raising=False)
    monkeypatch.setattr(module, "record_silent_end", lambda *_, **__: pytest.fail("there is no update"))
    with pytest.raises(AirflowException):
        task._raise_failure(
            Failure("Killed.", transient=True, silent=True), PROJECT, "r1", False, ValueError()
        )


@pytest.mark.parametrize(
    ("report", "in_log", "answer"),
    [
        (REPORT, None, REPORT),
        (None, REPORT, REPORT),
        (None, {**REPORT, "state": "FAILED"}, None),
        (None, None, None),
    ],
)
def test_what_a_driver_has_reported(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, report: Any, in_log: Any, answer: Any
):
    """Its own line; where that is broken, a completed update of the log, and no other end counts for one."""
    monkeypatch.setattr(module, "report_in_log", lambda *_: in_log)
    monkeypatch.setattr(module, "newest_update", lambda *_: None)
    monkeypatch.setattr(module, "record_silent_end", lambda *_, **__: None)
    driver: Any = Driver(0, report)
    if answer is not None:
        assert task._report(driver, PROJECT, "r1", last=False) == answer
    else:
        with pytest.raises(AirflowException, match="without a report"):
            task._report(driver, PROJECT, "r1", last=False)


@pytest.mark.parametrize("error", [None, AirflowException("code 1"), TimeoutError("too long")])
def test_no_driver_outlives_its_task(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, error: Exception | None
):
    """However the task ends, by its driver or by an error of its own: one left alone would hold the pipeline."""
    driver = Driver(0 if error is None else 1, REPORT)

    def submit(*_: Any) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(task, "_get_hook", lambda: None)
    monkeypatch.setattr(module, "Driver", lambda *_: driver)
    monkeypatch.setattr(module, "end_with_supervisor", lambda: None)
    monkeypatch.setattr(module, "home_folder", lambda: "home")
    monkeypatch.setattr(module, "newest_update", lambda *_: None)
    monkeypatch.setattr(module.SparkSubmitOperator, "execute", submit)
    monkeypatch.setattr(task, "_failure", lambda *_: Failure("The update failed.", transient=False))
    if error is None:
        assert task._submit({}, PROJECT, "r1", last=False) == REPORT
    else:
        with pytest.raises(AirflowFailException if isinstance(error, AirflowException) else TimeoutError):
            task._submit({}, PROJECT, "r1", last=False)
    assert driver.stops == 1


def test_a_task_of_some_tables_runs_what_was_asked_for_of_them(monkeypatch: pytest.MonkeyPatch):
    """Others of the form are other tasks': it is skipped where none is its own, and a table that there is not is refused."""
    outputs = [SimpleNamespace(name=name) for name in ("bronze", "silver")]
    monkeypatch.setattr(module, "read_manifest", lambda _: SimpleNamespace(outputs=outputs))
    project: Any = SimpleNamespace(folder=Path("shop"))
    mine = RunUpdateOperator(task_id="bronze", pipeline="shop", tables=["bronze"])
    assert mine._selection(project, {}).tables == ("bronze",)
    assert mine._selection(project, {"tables": ["bronze", "silver"]}).tables == ("bronze",)
    with pytest.raises(AirflowSkipException):
        mine._selection(project, {"tables": ["silver"]})
    with pytest.raises(UnknownDataset):
        mine._selection(project, {"tables": ["bronze", "sliver"]})


class World:
    """A pipeline with something to do; ``prepared``: which attempt of how many a driver was begun as."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prepared: list[tuple[int, int]] = []
        self.lasts: list[bool] = []
        self.error: Exception | None = None
        self.before: str | None = None
        project = SimpleNamespace(
            check_parameters=self.check, source_hash=lambda: "hash", pipeline_id="shop", state_folder="state"
        )
        monkeypatch.setattr(module, "is_followed_by_none", lambda *_: False)
        monkeypatch.setattr(module, "pipeline_project", lambda *_, **__: project)
        monkeypatch.setattr(module, "report_without_news", lambda *_: None)
        monkeypatch.setattr(
            module, "newest_update", lambda *_: self.before and SimpleNamespace(state=self.before)
        )
        monkeypatch.setattr(module, "announce_unfollowed", lambda *_: None)

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def run(self, task: Any, monkeypatch: pytest.MonkeyPatch, attempt: int, max_tries: int) -> Any:
        """One attempt of the task."""
        parameters = SimpleNamespace(environment={}, values={}, variables={})
        monkeypatch.setattr(task, "_parameters", lambda _: parameters)
        monkeypatch.setattr(task, "_selection", lambda *_: None)
        monkeypatch.setattr(task, "_prepare", lambda *given, **_: self.prepared.append((given[3], given[4])))
        monkeypatch.setattr(task, "_submit", lambda *_, last: self.lasts.append(last) or REPORT)
        instance = SimpleNamespace(dag_id="shop", run_id="r", try_number=attempt, max_tries=max_tries)
        return task.execute({"ti": instance, "params": {}})


@pytest.mark.parametrize(
    ("attempt", "max_tries", "before", "begun", "last"),
    [
        (1, 2, None, (1, 3), False),
        (3, 2, "FAILED", (3, 3), True),
        # Cleared after a success: Airflow allows for as many attempts again.
        (2, 3, "COMPLETED", (1, 3), False),
        # `airflow tasks test` counts none.
        (0, 0, None, (1, 1), False),
    ],
)
def test_a_driver_knows_which_attempt_it_is(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, attempt: int, max_tries: int, before: str | None,
    begun: tuple[int, int], last: bool,
):  # fmt: skip
    """Of how many since the run was started or cleared: the last one tells those who wait that no other comes."""
    world = World(monkeypatch)
    world.before = before
    assert world.run(task, monkeypatch, attempt, max_tries) == {**REPORT, "spec_hash": "hash"}
    assert (world.prepared, world.lasts) == ([begun], [last])


@pytest.mark.parametrize(
    ("error", "may_pass"), [(StoreUnreachable("Away."), True), (InvalidSpec("It has no name."), False)]
)
def test_what_keeps_a_driver_from_being_started(
    monkeypatch: pytest.MonkeyPatch, task: RunUpdateOperator, error: Exception, may_pass: bool
):
    """A store that is away is tried again; a spec that is wrong is not."""
    world = World(monkeypatch)
    world.error = error
    with pytest.raises(AirflowException) as raised:
        world.run(task, monkeypatch, 1, 2)
    assert isinstance(raised.value, AirflowFailException) is not may_pass
    assert world.prepared == []
