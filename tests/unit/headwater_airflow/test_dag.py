"""Settings of a pipeline's DAGs that decide when and how often they run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.airflow_spec import ON_DATA, AirflowSpec, NotifierSpec
from headwater.errors import UsageError
from headwater_airflow import dag as module
from headwater_airflow import entities
from headwater_airflow.entities import PipelineTask

LOG = "headwater_airflow.notifications.log.LogNotifier"


def task(airflow: AirflowSpec | None = None, **more: Any) -> PipelineTask:
    """A pipeline without a manifest."""
    return PipelineTask("shop", "shop", "shop", "Shop", airflow or AirflowSpec(), **more)


@pytest.fixture(autouse=True)
def no_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a DAG does is no matter here."""
    for name in ("render", "render_checks", "render_maintenance", "render_repair", "render_backfill"):
        monkeypatch.setattr(module, name, lambda *_, **__: None)


def test_one_run_at_a_time_and_none_for_the_past():
    """Two updates at once would wait for each other; a DAG that was off does not catch up on what its next run reads."""
    for make in (
        module.PipelineDag,
        module.PipelineCheckDag,
        module.PipelineMaintenanceDag,
        module.PipelineRepairDag,
        module.PipelineBackfillDag,
    ):
        dag = make(task())
        assert (dag.max_active_runs, dag.catchup) == (1, False)


def test_an_owner_and_a_queue_are_for_all_tasks():
    """An author's own defaults stand beside those of the spec, and over them."""
    spec = AirflowSpec(owner="sales", queue="spark", tags=("night",))
    dag = module.PipelineCheckDag(task(spec), default_args={"owner": "me", "retries": 3})
    assert dag.default_args == {"owner": "me", "queue": "spark", "retries": 3}
    assert dag.tags == {"headwater", "night"}
    assert module.common_settings(task())["default_args"] == {}


def test_when_they_run():
    """Checks and maintenance as the spec says; what needs the lease never runs beside an update that never ends."""
    spec = AirflowSpec(check_schedule="1 * * * *", maintenance_schedule="2 3 * * *")
    assert module.PipelineCheckDag(task(spec)).schedule == "1 * * * *"
    assert module.PipelineMaintenanceDag(task(spec)).schedule == "2 3 * * *"
    assert module.PipelineMaintenanceDag(task(spec, continuous=True)).schedule is None
    assert module.PipelineRepairDag(task(spec)).schedule is None
    assert module.PipelineBackfillDag(task(spec)).schedule is None
    assert module._schedule(task(schedule="@daily")) == "@daily"
    assert module._schedule(task()) is None
    (asset,) = module._schedule(task(schedule=ON_DATA)) or ()
    assert "shop" in asset.name


def test_a_backfill_by_schedule_needs_an_interval():
    """There is nothing that could cut time; with one, the DAG has it."""
    with pytest.raises(UsageError, match="needs an interval"):
        module.PipelineBackfillDag(task(), scheduled=True)
    assert module.PipelineBackfillDag(task(), interval="@daily", scheduled=True).schedule is not None


def test_who_hears_of_a_runs_end():
    """A notifier is called for what it names, by the callback of that outcome."""
    notifiers = (NotifierSpec(notifier=LOG, when=("failure",)),)
    callbacks = module.run_callbacks(task(AirflowSpec(notifiers=notifiers)))
    assert {name: one.outcome for name, one in callbacks.items()} == {"on_failure_callback": "failure"}
    both = (*notifiers, NotifierSpec(notifier=LOG, when=("success", "alert")))
    assert set(module.run_callbacks(task(AirflowSpec(notifiers=both)))) == {
        "on_failure_callback",
        "on_success_callback",
    }
    assert module.run_callbacks(task()) == {}


def test_checkpoints_that_can_be_repaired_are_offered():
    """Those of streams and of flows that run once; a view has none."""
    flows = [
        SimpleNamespace(name=name, streaming=streaming, once=once)
        for name, streaming, once in (("view", False, False), ("stream", True, False), ("once", False, True))
    ]
    dag = module.PipelineRepairDag(task(manifest=SimpleNamespace(flows=flows)))  # type: ignore[arg-type]
    assert dag.params.get_param("flow").schema["examples"] == ["stream", "once"]


def test_a_folder_in_the_text_of_a_dag():
    """Its last parts alone: the text is the same on every machine."""
    assert entities._shown(Path("/srv/airflow/jobs/pipelines/orders")) == "jobs/pipelines/orders"
