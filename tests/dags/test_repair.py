"""The DAG that repairs a checkpoint: a form, the plan with its cost first, and a dry run unless it is told."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from tests.dags.observed_pipeline import write_observed_pipeline

from headwater.checkpoints.layout import flow_checkpoint
from headwater.event_log.reader import events
from headwater_airflow.dag import PipelineRepairDag


@pytest.fixture
def state(roots):
    """The folder of state of the pipeline `medallion`, after an update."""
    return write_observed_pipeline(roots)


@pytest.fixture
def run(state):
    """Run a task of the repair DAG."""

    def task(task_id, **params):
        operator = PipelineRepairDag("medallion").get_task(task_id)
        return operator.execute({"ti": SimpleNamespace(task_id=task_id), "params": params})

    return task


ANEW = {"flow": "silver", "action": "new-epoch", "from_start": True}


def test_the_form_offers_the_flows_and_is_a_dry_run(state):
    """Nobody schedules it; its values are checked by Airflow, too."""
    dag = PipelineRepairDag("medallion")
    assert (dag.dag_id, dag.schedule) == ("medallion_repair", None)
    assert dag.params["dry_run"] is True
    assert dag.params.get_param("flow").schema["examples"] == ["bronze", "silver", "gold"]
    assert "full-refresh" not in dag.params.get_param("action").schema["enum"]
    dag.params.validate()
    assert dag.get_task("plan").downstream_task_ids == {"repair"}


def test_the_plan_comes_first_and_only_an_order_carries_it_out(run, state):
    """`plan` tells steps, losses and doubles; a dry run changes nothing; told so, a new epoch is live, and recorded."""
    plan = run("plan", **ANEW)
    assert (plan["state"], plan["plan"]["action"]) == ("PLANNED", "new-epoch")
    json.dumps(plan)
    for dry in ({}, {"dry_run": True}, {"dry_run": "false"}):
        with pytest.raises(AirflowSkipException):
            run("repair", **ANEW, **dry)
    checkpoint = flow_checkpoint(state, "silver", "silver")
    assert checkpoint.read_state().epoch == 0
    assert run("repair", **ANEW, dry_run=False)["state"] == "COMPLETED"
    assert checkpoint.read_state().epoch == 1
    assert checkpoint.epoch_folder(0).is_dir()
    assert events(state, event_type="user_action")


@pytest.mark.parametrize(
    "form",
    [
        {"flow": "../silver", "action": "mend"},
        {"flow": "nothing", "action": "mend"},
        {"flow": "silver", "action": "full-refresh"},
        {"flow": "silver", "action": "mend", "batch": 0},
        {"flow": "silver", "action": "rewind", "batch": "1"},
        {"flow": "silver", "action": "new-epoch", "from_time": "yesterday"},
        {"flow": "silver", "action": "restore", "snapshot": "../../x"},
    ],
)
def test_a_wrong_or_hostile_form_changes_nothing(run, state, form):
    """Whatever a run was triggered with is checked before anything is touched."""
    with pytest.raises(AirflowFailException):
        run("repair", **form, dry_run=False)
    assert flow_checkpoint(state, "silver", "silver").read_state().epoch == 0
