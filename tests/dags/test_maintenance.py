"""The DAG that tidies a pipeline's tables: the plan first, the work after it, and a driver only where Spark is needed."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from airflow.exceptions import ParamValidationError
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from deltalake import DeltaTable, write_deltalake
from tests.dags.observed_pipeline import write_observed_pipeline

from headwater.leases.file_lease import update_lease
from headwater_airflow.dag import PipelineMaintenanceDag
from headwater_airflow.forms.selection import maintenance_params


@pytest.fixture
def table(roots):
    """The table `bronze` of the pipeline `medallion`, in six small files."""
    write_observed_pipeline(roots)
    folder = roots / "warehouse" / "shop" / "bronze"
    columns = DeltaTable(folder).schema().fields
    for number in range(5):
        row = {field.name: pa.array([number], pa.int64()) for field in columns}
        write_deltalake(folder, pa.table(row), mode="append")
    return folder


@pytest.fixture
def run(table, driver):
    """Run a task of the maintenance DAG."""

    def task(task_id="maintain", **params):
        operator = PipelineMaintenanceDag("medallion").get_task(task_id)
        instance = SimpleNamespace(dag_id="medallion_maintenance", run_id="r", try_number=1, max_tries=0)
        return operator.execute({"ti": instance, "params": params})

    return task


def test_the_dag_shows_the_plan_before_it_works(roots, table):
    """Two tasks, one after the other, at night, with a form for a dry run; nothing of the machine is in it."""
    dag = PipelineMaintenanceDag("medallion")
    assert dag.dag_id == "medallion_maintenance"
    assert dag.get_task("plan").downstream_task_ids == {"maintain"}
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("30 3 * * *", False, 1)
    assert set(dag.params) == {"dry_run", "tables", "retention", "keep"}
    dag.params.validate()


def test_the_form_takes_what_it_asks_for():
    """The spans of its own descriptions, and fractions; what is no span is refused before a task runs."""
    params = maintenance_params(["bronze"])
    for name in ("retention", "keep"):
        for span in ("7 days", "0 hours", "30d", " 1.5 hours ", None):
            assert params[name].resolve(span) == span
        for wrong in ("7", "days", "$(reboot)", "-1 days", "7 days; rm"):
            with pytest.raises(ParamValidationError):
                params[name].resolve(wrong)


def test_the_plan_changes_nothing_and_the_work_needs_no_driver(run, driver, table):
    """`plan` tells files and bytes; a dry run skips the work; the work puts the files together in the task itself."""
    driver.will({"flows": {}})
    plan = run("plan")
    step = next(step for step in plan["plan"]["steps"] if step["subject"] == "bronze")
    assert (plan["state"], step["kind"], step["files"] >= 5) == ("PLANNED", "optimize", True)
    json.dumps(plan)
    with pytest.raises(AirflowSkipException):
        run(dry_run=True)
    assert len(DeltaTable(table).file_uris()) >= 5
    done = run(tables=["bronze"])
    assert [(item["kind"], item["state"]) for item in done["steps"]] == [("optimize", "COMPLETED")]
    assert len(DeltaTable(table).file_uris()) == 1
    assert driver.calls == []


def test_hostile_and_wrong_forms_are_refused(run):
    """Names and spans are checked again, whoever posted them."""
    for params in ({"tables": ["--yes"]}, {"tables": ["nope"]}, {"retention": "$(reboot)"}):
        with pytest.raises(AirflowFailException):
            run(**params)


def test_a_running_update_is_waited_for_and_then_left_to_a_retry(run, roots, monkeypatch):
    """With the lease in other hands, the task fails in a way that a retry can help."""
    from datetime import timedelta

    monkeypatch.setattr("headwater_airflow.operators.run_maintenance._ROOM", timedelta(0))
    lease = update_lease(roots / "storage" / "pipelines" / "medallion", "an update")
    with lease, pytest.raises(AirflowException, match="UPDATE_IN_PROGRESS") as caught:
        run(tables=["bronze"])
    assert not isinstance(caught.value, AirflowFailException)


def test_tables_of_spark_are_submitted(run, driver, table, monkeypatch):
    """A table that delta-rs can't write goes to a driver, with the roots and only its kind of work."""
    monkeypatch.setattr("headwater.maintenance.file_layout.delta_rs_may_write", lambda opened: False)
    driver.will({"flows": {}, "report": {"state": "COMPLETED", "steps": [{"kind": "optimize"}]}})
    assert run(tables=["bronze"])["steps"] == [{"kind": "optimize"}]
    (call,) = driver.calls
    assert (call["only"], call["tables"], call["yes"]) == ("optimize", "bronze", True)
    assert len(DeltaTable(table).file_uris()) >= 5
