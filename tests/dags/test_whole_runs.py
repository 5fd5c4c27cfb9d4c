"""Whole runs of a DAG by Airflow itself, with real events from a driver that needs no JVM."""

from __future__ import annotations

import pytest
from tests.dags.pipeline_folder import write_pipeline

pytestmark = pytest.mark.usefixtures("airflow_database")


@pytest.fixture
def run_dag(roots, driver, monkeypatch):
    """Run the pipeline `medallion` to its end."""

    def run(*attempts, airflow="{retries: 1, retry_delay: 0 s}", conf=None):
        write_pipeline(roots / "pipelines" / "medallion", airflow=airflow)
        folder = roots / "dags"
        folder.mkdir()
        (folder / "medallion.py").write_text(
            "from headwater_airflow.dag import PipelineDag\n\ndag = PipelineDag('medallion')\n"
        )
        monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(folder))
        driver.will(*attempts)
        from airflow.dag_processing.dagbag import DagBag

        dag = DagBag(folder).dags["medallion"]
        done = dag.test(run_conf=conf)
        return done.state, {task.task_id: task.state for task in done.get_task_instances()}

    return run


def test_a_good_update_turns_every_table_green(run_dag):
    """The update runs first, whatever order tasks are taken in, and each table follows."""
    state, tasks = run_dag({"flows": {"bronze": 3, "silver": 3, "gold": 0}})
    assert state == "success"
    assert tasks == dict.fromkeys(("update", "bronze", "silver", "gold"), "success")


def test_a_failed_table_is_red_alone(run_dag):
    """What was done before it is green, what depends on it is not, and the run fails without a retry."""
    state, tasks = run_dag({"exit": 1, "flows": {"bronze": 3, "silver": "terminal", "gold": "skipped"}})
    assert state == "failed"
    assert tasks == {"update": "failed", "bronze": "success", "silver": "failed", "gold": "upstream_failed"}


def test_a_retry_finishes_what_the_first_attempt_left(run_dag, driver):
    """A killed driver is tried again under the same request, and every table ends well."""
    state, tasks = run_dag({"killed": True, "flows": {"bronze": 3}}, {"flows": {"silver": 3, "gold": 3}})
    assert state == "success"
    assert set(tasks.values()) == {"success"}
    assert len({call["request_id"] for call in driver.calls}) == 1
    assert [call["attempt"] for call in driver.calls] == ["1", "2"]


def test_a_table_that_was_not_chosen_is_skipped_and_its_reader_still_runs(run_dag):
    """A choice of tables reaches the driver; the others are neither green nor in the way."""
    state, tasks = run_dag({"flows": {"silver": 2}}, conf={"tables": ["silver"]})
    assert state == "success"
    assert tasks == {"update": "success", "bronze": "skipped", "silver": "success", "gold": "skipped"}


def test_one_submit_per_table_runs_in_the_graphs_order(run_dag, driver):
    """With `per_table` every table is submitted by itself, each after what it reads."""
    state, tasks = run_dag({"flows": {}}, airflow="{tasks: per_table, retries: 0}")
    assert state == "success"
    assert [call["tables"] for call in driver.calls] == ["bronze", "silver", "gold"]
    assert len({call["request_id"] for call in driver.calls}) == 3
    assert set(tasks) == {"bronze", "silver", "gold"}
