"""The lag sensor and the check that turns red."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from tests.dags.pipeline_folder import write_pipeline

from headwater.errors import FlowInterrupted
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import FlowLag
from headwater_airflow.conditions.lag import LagCondition
from headwater_airflow.dag import PipelineCheckDag
from headwater_airflow.operators.lag_check import LagCheckOperator
from headwater_airflow.sensors.lag import LagSensor
from headwater_airflow.triggers.condition import ConditionTrigger


@pytest.fixture
def backlogs(medallion, monkeypatch):
    """What each flow has not read yet; a test may change it while something waits."""
    backlogs_by_name = {
        name: Backlog(records=0, seconds=0.0, moved=False) for name in ("bronze", "silver", "gold")
    }

    def measured(project, flow):
        if isinstance(backlogs_by_name[flow.name], Exception):
            raise backlogs_by_name[flow.name]
        return FlowLag(flow.name, flow.target, flow.streaming, backlogs_by_name[flow.name], ())

    monkeypatch.setattr("headwater_airflow.conditions.lag_reading.flow_lag", measured)
    return backlogs_by_name


def first_event(trigger, seconds=5, after=None):
    async def run():
        if after is not None:
            asyncio.get_running_loop().call_later(0.3, after)
        return await asyncio.wait_for(anext(trigger.run()), seconds)

    path, arguments = trigger.serialize()
    assert path == "headwater_airflow.triggers.condition.ConditionTrigger"
    assert ConditionTrigger(**arguments).serialize() == (path, arguments)
    return asyncio.run(run())


def waiting(dataset=None, **limits):
    return ConditionTrigger.of(LagCondition("medallion", dataset, limits), 0.05)


def test_the_sensor_succeeds_at_once_within_its_limits(backlogs):
    """A pipeline that has caught up needs no deferral; the lag of every flow is the task's result."""
    result = LagSensor(task_id="wait", pipeline="medallion", max_seconds=0, max_records=0).execute({})
    assert [flow["flow"] for flow in result["flows"]] == ["bronze", "silver", "gold"]


def test_the_sensor_defers_with_its_timeout_while_it_is_behind(backlogs):
    """Over a limit, the task waits in the triggerer, not longer than its timeout."""
    backlogs["silver"] = Backlog(records=5, seconds=90.0, moved=True)
    sensor = LagSensor(task_id="wait", pipeline="medallion", max_seconds=60, timeout=120, poke_interval=7)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    assert deferred.value.timeout.total_seconds() == 120
    assert deferred.value.trigger.serialize()[1] == {
        "kind": "LagCondition",
        "arguments": {"pipeline": "medallion", "dataset": None, "limits": {"seconds": 60}},
        "poll_seconds": 7.0,
    }


def test_the_trigger_fires_when_the_pipeline_has_caught_up(backlogs):
    """At the limit is good enough."""
    backlogs["silver"] = Backlog(records=5, moved=True)

    def catch_up():
        backlogs["silver"] = Backlog(records=2, moved=True)

    event = first_event(waiting(records=2), after=catch_up)
    assert event.payload["breaches"] == []


@pytest.mark.parametrize("measure", ["records", "bytes", "files", "versions", "seconds"])
def test_every_measure_can_be_waited_for(backlogs, measure):
    """Each counts by itself, and stands in the table of the message."""
    low = Backlog(records=1, bytes=1, files=1, versions=1, seconds=1.0, moved=True)
    backlogs["gold"] = replace(low, **{measure: 3})
    limit = {f"max_{measure}": 2}
    sensor = LagSensor(task_id="wait", pipeline="medallion", poke_interval=0.05, **limit)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})

    def catch_up():
        backlogs["gold"] = replace(low, **{measure: 2})

    event = first_event(deferred.value.trigger, after=catch_up)
    assert event.payload["limits"] == {measure: 2}


def test_one_table_can_be_waited_for_alone(backlogs):
    """The lag of the others does not matter then."""
    backlogs["bronze"] = Backlog(records=5, moved=True)
    assert [flow["flow"] for flow in first_event(waiting("gold", records=0)).payload["flows"]] == ["gold"]


@pytest.mark.parametrize("trouble", [Backlog.because("the broker is away"), FlowInterrupted("gone")])
def test_a_lag_that_is_not_known_is_waited_for(backlogs, trouble):
    """An unreachable broker is neither caught up nor the end of waiting."""
    backlogs["bronze"] = trouble
    with pytest.raises(TimeoutError):
        first_event(waiting(records=0), seconds=0.4)


def test_an_unknown_table_ends_the_wait_with_a_sentence(backlogs):
    """Waiting for what can never be fails at once, in the trigger as in the sensor."""
    event = first_event(waiting("nothing", records=0))
    sensor = LagSensor(task_id="wait", pipeline="medallion", dataset="nothing", max_records=0)
    for action in (lambda: sensor.resume({}, event.payload), lambda: sensor.execute({})):
        with pytest.raises(AirflowFailException, match="no table 'nothing'"):
            action()


def test_a_sensor_without_a_limit_is_refused():
    """It would never have a reason to wait."""
    for limits in ({}, {"max_seconds": -1}):
        with pytest.raises(ValueError, match="max_seconds or max_records"):
            LagSensor(task_id="wait", pipeline="medallion", **limits)


def test_the_check_fails_with_a_table_of_flow_lag_and_limit(backlogs):
    """The message shows what is over, with numbers, the worst first."""
    backlogs["gold"] = Backlog(records=12_345, seconds=1000.0, moved=True)
    check = LagCheckOperator(task_id="lag", pipeline="medallion", max_seconds=900)
    with pytest.raises(AirflowFailException) as failed:
        check.execute({})
    lines = str(failed.value).splitlines()
    assert lines[0] == "A flow is over the limit."
    first = next(line for line in lines if "gold" in line or "bronze" in line)
    assert first.split() == ["gold", "gold", "12,345", "1,000", "over", "the", "limit"]
    assert "seconds (limit 900)" in str(failed.value)


def test_the_check_counts_an_unknown_lag_as_over(backlogs):
    """Silence would hide trouble: the reason is in the table."""
    backlogs["bronze"] = Backlog.because("the broker is away")
    with pytest.raises(AirflowFailException, match="the broker is away"):
        LagCheckOperator(task_id="lag", pipeline="medallion", max_seconds=900).execute({})


def test_the_check_passes_within_limits_and_without_any(backlogs):
    """Green, with the lag as the task's result."""
    backlogs["bronze"] = Backlog(records=5, seconds=3.0, moved=True)
    assert LagCheckOperator(task_id="lag", pipeline="medallion", max_seconds=3).execute({})["limits"] == {
        "seconds": 3
    }
    assert LagCheckOperator(task_id="lag", pipeline="medallion").execute({})["breaches"] == []


def test_the_check_of_a_pipeline_that_never_ran_is_green(roots):
    """Before the first update and without a manifest, there is nothing to check; the sensor waits."""
    folder = write_pipeline(roots / "pipelines" / "medallion")
    (folder / "manifest.json").unlink()
    assert LagCheckOperator(task_id="lag", pipeline="medallion", max_seconds=1).execute({})["flows"] == []
    with pytest.raises(TaskDeferred):
        LagSensor(task_id="wait", pipeline="medallion", max_seconds=1).execute({})


def test_the_check_dag_has_the_limits_of_the_pipeline(roots):
    """Schedule and limits are those of the `airflow` section."""
    write_pipeline(
        roots / "pipelines" / "medallion",
        airflow="{check_schedule: '@hourly', alerts: {lag_seconds: 60, lag_records: 10}}",
    )
    dag = PipelineCheckDag("medallion")
    check = dag.get_task("lag")
    assert (dag.dag_id, dag.schedule) == ("medallion_checks", "@hourly")
    assert (check.max_seconds, check.max_records, check.retries) == (60, 10, 0)
    assert "- 60 seconds of lag" in dag.doc_md


def test_the_trigger_measures_off_the_event_loop(backlogs, monkeypatch):
    """A slow broker does not hold up the triggerer's other triggers."""
    import threading

    threads = []
    real = backlogs["bronze"]
    monkeypatch.setattr(
        "headwater_airflow.conditions.lag_reading.flow_lag",
        lambda project, flow: (
            threads.append(threading.current_thread()) or FlowLag(flow.name, flow.target, True, real, ())
        ),
    )
    first_event(waiting(records=0))
    assert threading.main_thread() not in threads


def test_a_reading_can_be_pushed_as_xcom(backlogs):
    """What sensor and check return is plain JSON."""
    import json

    assert json.dumps(LagCheckOperator(task_id="lag", pipeline="medallion").execute(SimpleNamespace()))
