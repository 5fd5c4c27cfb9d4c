"""The DAGs that pipelines become."""

from __future__ import annotations

import pytest
from tests.dags.pipeline_folder import write_pipeline

from headwater.errors import HeadwaterError, InvalidName
from headwater_airflow.assets import table_asset
from headwater_airflow.dag import (
    PipelineBackfillDag,
    PipelineCheckDag,
    PipelineDag,
    PipelineMaintenanceDag,
    PipelineRepairDag,
)
from headwater_airflow.operators.dataset_update import DatasetUpdateOperator
from headwater_airflow.operators.run_update import RunUpdateOperator

DIAMOND = {
    "raw": (),
    "parsed": ("raw",),
    "other.side": ("parsed",),
    "seen": ("parsed",),
    "top": ("other.side", "seen"),
}


def edges(dag):
    return {(task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids}


def test_the_update_stands_beside_a_task_for_each_table(roots):
    """Tables have the graph's edges, views are looked through, and nothing hangs on the update itself."""
    write_pipeline(roots / "pipelines" / "diamond", DIAMOND, kinds={"seen": "temporary_view"})
    dag = PipelineDag("diamond")
    assert edges(dag) == {
        ("raw", "parsed"),
        ("parsed", "other__side"),
        ("other__side", "top"),
        ("parsed", "top"),
    }
    assert set(dag.task_ids) == {"update", "raw", "parsed", "other__side", "top"}
    assert isinstance(dag.get_task("update"), RunUpdateOperator)
    assert isinstance(dag.get_task("top"), DatasetUpdateOperator)


def test_each_table_is_an_asset_under_its_pipeline(roots):
    """The outlets name pipeline, schema and table, and other DAGs can ask for the same asset."""
    write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    dag = PipelineDag("diamond")
    (asset,) = dag.get_task("other__side").outlets
    assert asset.uri == "x-delta://diamond/other/side"
    assert table_asset("diamond", "top").uri == "x-delta://diamond/shop/top"
    with pytest.raises(KeyError, match="raw, parsed"):
        table_asset("diamond", "none")


def test_who_waits_for_a_table_stays_while_its_source_is_edited(roots):
    """Until the manifest is written anew, the DAGs of others are scheduled on the asset as before: an import error would take them away."""
    folder = write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    asset = table_asset("diamond", "top")
    (folder / "transformations" / "tables.py").write_text("# edited\n")
    assert table_asset("diamond", "top") == asset
    (folder / "manifest.json").unlink()
    with pytest.raises(KeyError, match=r"no manifest\.json"):
        table_asset("diamond", "top")


def test_per_table_submits_each_table_by_itself(roots):
    """With `tasks: per_table` every table is an update of its own, in the graph's order; the form has what one can do."""
    write_pipeline(roots / "pipelines" / "diamond", DIAMOND, airflow="{tasks: per_table, pool: spark}")
    dag = PipelineDag("diamond")
    assert {task.task_id: task.tables for task in dag.tasks}["other__side"] == ["other.side"]
    assert all(isinstance(task, RunUpdateOperator) and task.pool == "spark" for task in dag.tasks)
    assert ("other__side", "top") in edges(dag)
    assert set(dag.params) == {"tables", "full_refresh"}


def test_one_pool_bounds_the_drivers_of_all_pipelines(roots, monkeypatch):
    """HEADWATER_POOL is that of each task that may start a JVM and of no other; a pipeline's own wins, and without either it is Airflow's."""
    write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    write_pipeline(roots / "pipelines" / "other", DIAMOND, airflow="{pool: heavy, tasks: per_table}")
    assert PipelineDag("diamond").get_task("update").pool == "default_pool"
    monkeypatch.setenv("HEADWATER_POOL", " drivers ")
    assert {task.pool for task in PipelineDag("other").tasks} == {"heavy"}
    pools = {
        f"{dag.dag_id}.{task.task_id}": task.pool
        for make in (
            PipelineDag,
            PipelineMaintenanceDag,
            PipelineBackfillDag,
            PipelineRepairDag,
            PipelineCheckDag,
        )
        for dag in [make("diamond")]
        for task in dag.tasks
    }
    drivers = {name for name, pool in pools.items() if pool == "drivers"}
    assert drivers == {
        "diamond.update",
        "diamond_maintenance.plan",
        "diamond_maintenance.maintain",
        "diamond_backfill.backfill",
    }
    assert set(pools.values()) == {"drivers", "default_pool"}


def test_the_settings_of_the_pipeline_reach_the_dag(roots):
    """Schedule, retries, timeout, tags and owner are those of pipeline.yml; there is never a second active run."""
    write_pipeline(
        roots / "pipelines" / "diamond",
        DIAMOND,
        airflow="{schedule: '@hourly', retries: 4, retry_delay: 10 s, timeout: 1 h, tags: [shop], owner: anna, queue: spark}",
    )
    dag = PipelineDag("diamond", is_paused_upon_creation=False, default_args={"depends_on_past": True})
    update = dag.get_task("update")
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("@hourly", False, 1)
    assert (update.retries, update.retry_delay.total_seconds(), update.owner) == (4, 10, "anna")
    assert update.execution_timeout.total_seconds() == 3600
    # Runs of Airflow's own backfill are not bound by the DAG.
    assert update.max_active_tis_per_dag == 1
    assert dag.get_task("top").retries == 0
    assert dag.tags == {"headwater", "shop"}
    assert dag.is_paused_upon_creation is False
    # Arguments for all tasks are added to those of the spec.
    assert (update.queue, update.depends_on_past) == ("spark", True)
    assert update.priority_weight > dag.get_task("raw").priority_weight


@pytest.mark.parametrize(
    ("spec", "schedule"),
    [("", "@continuous"), ("airflow: {schedule: '@daily'}", "@daily"), ("airflow: {schedule: null}", None)],
)
def test_a_long_stream_runs_again_and_again(roots, spec, schedule):
    """With `processing_time` the DAG is continuous, one run at a time, unless its schedule is given."""
    folder = write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    long = "trigger: {processing_time: 10 seconds, run_for: 30 minutes}"
    (folder / "pipeline.yml").write_text(f"name: diamond\n{long}\n{spec}\n")
    dag = PipelineDag("diamond")
    assert (dag.schedule, dag.max_active_runs) == (schedule, 1)


def test_a_continuous_pipeline_is_one_task(roots):
    """Its update does not end: nothing waits for it, the next begins with its end, and its form chooses no part of it."""
    folder = write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    parameters = "parameters: {region: {default: north}}"
    (folder / "pipeline.yml").write_text(
        f"name: diamond\ntrigger: continuous\n{parameters}\nairflow: {{retries: 5}}\n"
    )
    dag = PipelineDag("diamond")
    assert (dag.schedule, dag.max_active_runs, dag.task_ids) == ("@continuous", 1, ["update"])
    update = dag.get_task("update")
    assert (type(update).__name__, update.retries, update.execution_timeout) == (
        "RunContinuouslyOperator",
        5,
        None,
    )
    assert list(dag.params) == ["region"]
    assert PipelineMaintenanceDag("diamond").schedule is None
    assert "until it is stopped" in dag.doc_md


@pytest.mark.parametrize("spoil", ["missing", "older", "broken"])
def test_without_a_fresh_manifest_there_is_one_task_and_the_dag_says_why(roots, spoil):
    """A manifest that is missing, older than the sources or no manifest leaves one task, with the reason."""
    folder = write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    if spoil == "missing":
        (folder / "manifest.json").unlink()
    elif spoil == "older":
        (folder / "transformations" / "tables.py").write_text("# changed since\n")
    else:
        (folder / "manifest.json").write_text("[]")
    dag = PipelineDag("diamond")
    assert dag.task_ids == ["update"]
    # DAGs that wait for a table that the committed manifest names are not cut off.
    assert bool(dag.get_task("update").outlets) == (spoil == "older")
    assert "manifest.json" in dag.description
    assert "headwater validate" in dag.doc_md


def test_the_environment_does_not_make_a_manifest_stale(roots, monkeypatch):
    """A value that comes from the environment differs from machine to machine; the manifest stays good."""
    folder = write_pipeline(roots / "pipelines" / "diamond", DIAMOND)
    spec = folder / "pipeline.yml"
    spec.write_text(spec.read_text() + "configuration: {servers: '${env:SERVERS:localhost}'}\n")
    from headwater.graph.manifest import read_manifest
    from headwater.graph.pipeline_project import open_project

    manifest = read_manifest(folder / "manifest.json")
    fresh = manifest.model_copy(update={"source_hash": open_project(folder).source_hash()})
    (folder / "manifest.json").write_text(fresh.to_json())
    monkeypatch.setenv("SERVERS", "elsewhere")
    assert len(PipelineDag("diamond").task_ids) == 6


def test_the_documentation_shows_the_graph(roots):
    """The DAG's page has each dataset with what it reads, and the graph as mermaid text; cells can't be broken."""
    write_pipeline(roots / "pipelines" / "diamond", DIAMOND, kinds={"seen": "temporary_view"})
    text = PipelineDag("diamond").doc_md
    assert "d1 --> d3" in text
    assert "| seen | temporary view | parsed | What \\| seen holds |" in text


@pytest.mark.parametrize("name", ["../secrets", "a/b", "", "a b", "x\n"])
def test_a_pipeline_is_named_by_one_plain_folder(roots, name):
    """A name that leads out of the folder of pipelines is refused."""
    with pytest.raises(InvalidName):
        PipelineDag(name)


def test_a_pipeline_that_is_not_there_is_told(roots):
    """An unknown pipeline is an import error with a sentence."""
    with pytest.raises(HeadwaterError, match="There is no folder"):
        PipelineDag("nowhere")
