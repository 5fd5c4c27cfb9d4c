"""What a run of maintenance is given, and how long it waits."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.definitions.trigger import AvailableNow, ProcessingTime
from headwater.errors import HeadwaterError, UsageError
from headwater_airflow.operators import run_maintenance as module
from headwater_airflow.operators.run_maintenance import RunMaintenanceOperator, maintenance_options, patience


def test_what_the_form_asks_for():
    """Each span of time is its own; what is left empty is left to the spec."""
    options = maintenance_options({"tables": ["orders"], "retention": "7 days", "keep": "12 hours"})
    assert (options.tables, options.retention, options.keep) == (
        ("orders",),
        timedelta(days=7),
        timedelta(hours=12),
    )
    options = maintenance_options({"retention": "", "keep": None})
    assert (options.tables, options.retention, options.keep) == ((), None, None)


@pytest.mark.parametrize("params", [{"retention": "soon"}, {"keep": "x days"}, {"tables": "orders"}])
def test_what_has_no_meaning_is_refused(params: dict[str, Any]):
    """Anybody may post anything."""
    with pytest.raises(HeadwaterError):
        maintenance_options(params)


def test_maintenance_waits_for_a_long_stream_to_end():
    """Ten minutes for an update that ends by itself, and those after the bound of one that runs for a time."""

    def waits(trigger: Any) -> timedelta:
        return patience(SimpleNamespace(spec=SimpleNamespace(trigger=trigger)))  # type: ignore[arg-type]

    assert waits(AvailableNow()) == timedelta(minutes=10)
    stream = ProcessingTime(timedelta(seconds=10), timedelta(hours=2))
    assert waits(stream) == timedelta(hours=2, minutes=10)


class World:
    """A pipeline of which steps are due, some of Spark."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps, self.for_spark, self.done = ["a"], [], list[str]()
        plan: Any = SimpleNamespace(as_dict=lambda: {"steps": self.steps})
        monkeypatch.setattr(module, "refuse_unknown_conf", lambda *_: None)
        monkeypatch.setattr(module, "pipeline_project", lambda _: SimpleNamespace(pipeline_id="shop"))
        monkeypatch.setattr(module, "stored_manifest", lambda _: None)
        monkeypatch.setattr(module, "chores", lambda *_: [])
        monkeypatch.setattr(module, "plan_lines", lambda *_: [])
        monkeypatch.setattr(module, "patience", lambda _: timedelta(0))
        monkeypatch.setattr(module, "maintain", self.maintain)
        monkeypatch.setattr(module, "check_outcomes", self.check)
        monkeypatch.setattr(RunMaintenanceOperator, "_by_spark", self.by_spark)

        def look(_: Any) -> Any:
            plan.is_due, plan.for_spark = bool(self.steps), self.for_spark
            return plan

        monkeypatch.setattr(module, "look", look)

    def maintain(self, *_: Any, **__: Any) -> list[Any]:
        self.done.append("here")
        return [SimpleNamespace(as_dict=lambda: {"step": "here"})]

    def by_spark(self, *_: Any) -> list[Any]:
        self.done.append("spark")
        return [{"step": "spark"}]

    def check(self, outcomes: list[Any]) -> None:
        self.done.append(f"checked {len(outcomes)}")

    def run(self, *, only_plan: bool = False, **params: Any) -> Any:
        """The result of the task."""
        task = RunMaintenanceOperator(task_id="maintain", pipeline="shop", only_plan=only_plan)
        return task.execute({"params": params})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A pipeline with a step that is due."""
    return World(monkeypatch)


def test_a_dry_run_shows_the_plan_and_does_nothing(world: World):
    """The task of the plan shows it in either case, and the one that would do it is skipped."""
    assert world.run(only_plan=True, dry_run=True) == {"state": "PLANNED", "plan": {"steps": ["a"]}}
    assert world.run(only_plan=True, dry_run=False)["state"] == "PLANNED"
    with pytest.raises(AirflowSkipException):
        world.run(dry_run=True)
    assert world.done == []


def test_what_is_due_is_done(world: World):
    """By the task itself, and by a driver where a table needs Spark; a failed step is said when all others are done."""
    assert world.run() == {"state": "COMPLETED", "steps": [{"step": "here"}]}
    assert world.done == ["here", "checked 1"]
    world.for_spark, world.done = ["t"], []
    assert world.run()["steps"] == [{"step": "here"}, {"step": "spark"}]
    assert world.done == ["here", "spark", "checked 1"]
    world.steps, world.done = [], []
    assert world.run()["steps"] == [{"step": "spark"}]


def test_a_form_without_a_meaning_is_not_tried_again(world: World):
    """Before anything is looked at."""
    with pytest.raises(AirflowFailException, match="span of time"):
        world.run(keep="soon")
    with pytest.raises(UsageError):
        maintenance_options({"keep": "soon"})


@pytest.mark.parametrize("transient", [True, False])
def test_a_driver_that_fails(monkeypatch: pytest.MonkeyPatch, transient: bool):
    """Airflow tries again what may pass, and nothing else; the driver is stopped either way."""
    steps: list[str] = []
    driver: Any = SimpleNamespace(
        wait_for_last_words=lambda: steps.append("words"), stop=lambda: steps.append("stop"),
        exit_code=1, report=SimpleNamespace(content={"state": "FAILED"}),
    )  # fmt: skip

    def fails(*_: Any) -> None:
        raise AirflowException("exit code 1")

    monkeypatch.setattr(module, "Driver", lambda *_: driver)
    monkeypatch.setattr(module, "home_folder", lambda: None)
    monkeypatch.setattr(module, "end_with_supervisor", lambda: None)
    monkeypatch.setattr(
        module, "judge", lambda *given: SimpleNamespace(transient=transient, message=f"{given}")
    )
    monkeypatch.setattr(RunMaintenanceOperator, "_get_hook", lambda _: None)
    monkeypatch.setattr(SparkSubmitOperator, "execute", fails)
    task = RunMaintenanceOperator(task_id="maintain", pipeline="shop")
    with pytest.raises(AirflowException, match="FAILED") as caught:
        task._drive({})
    assert isinstance(caught.value, AirflowFailException) is not transient
    assert steps == ["words", "stop"]
