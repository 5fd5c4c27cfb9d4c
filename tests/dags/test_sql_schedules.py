"""``SCHEDULE`` of a SQL source becomes the schedule of the pipeline's DAG."""

from __future__ import annotations

import pytest
from airflow.dag_processing.dagbag import DagBag
from tests.dags.airflow_home import CHECKOUT
from tests.dags.pipeline_folder import write_pipeline

from headwater.errors import UnsupportedArgument
from headwater.graph.declared_schedule import declared_schedule
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import open_project
from headwater.graph.registry import Registry, registering
from headwater.sql_sources.source import SqlSource
from headwater_spark.loader.sql_declarations import declare_source

VIEW = "CREATE OR REFRESH MATERIALIZED VIEW {name} {clause} AS SELECT 1 AS one;\n"
HOURLY, MORNING = "SCHEDULE EVERY 1 HOUR", "SCHEDULE REFRESH CRON '0 30 7 ? * MON-FRI' AT TIME ZONE 'UTC'"


def validated(folder, *clauses: str, spec: str = "") -> None:
    """A pipeline of SQL views with these clauses, and its manifest as `validate` writes it."""
    write_pipeline(folder, {f"v{number}": () for number in range(len(clauses))})
    (folder / "pipeline.yml").write_text(f"name: {folder.name}\nschema: shop\n{spec}\n")
    (folder / "transformations" / "tables.py").unlink()
    text = "".join(VIEW.format(name=f"v{number}", clause=clause) for number, clause in enumerate(clauses))
    (folder / "transformations" / "views.sql").write_text(text)
    registry, project = Registry(catalog=None, schema="shop"), open_project(folder)
    with registering(registry):
        declare_source(SqlSource("transformations/views.sql", text), registry, None, {})  # type: ignore[arg-type]
    file = folder / "manifest.json"
    made = Manifest.model_validate_json(file.read_text())
    file.unlink()
    changed = {"schedule": declared_schedule(registry, project.spec), "source_hash": project.source_hash()}
    file.write_text(made.model_copy(update=changed).to_json())


def test_schedules_of_statements_reach_their_dags(roots):
    """EVERY and CRON as Airflow's cron texts, beside statements without one; pipeline.yml and `continuous` have the last word."""
    pipelines = {
        "every": ((HOURLY, "", HOURLY), "", "0 * * * *"),
        "cron": (("", MORNING), "", "30 7 * * MON-FRI"),
        "none": (("",), "", None),
        "of_spec": ((HOURLY, MORNING), "airflow: {schedule: '@daily'}", "@daily"),
        "by_hand": ((HOURLY,), "airflow: {schedule: null}", None),
        "keeps_running": ((HOURLY, MORNING), "trigger: continuous", "@continuous"),
    }
    for name, (clauses, spec, _) in pipelines.items():
        validated(roots / "pipelines" / name, *clauses, spec=spec)
    folder = roots / "dags"
    folder.mkdir()
    (folder / "pipelines.py").write_text((CHECKOUT / "dags" / "pipelines.py").read_text())
    bag = DagBag(str(folder), bundle_path=folder)
    assert bag.import_errors == {}
    assert {name: bag.dags[name].schedule for name in pipelines} == {
        name: schedule for name, (_, _, schedule) in pipelines.items()
    }
    assert all("older than the sources" not in (bag.dags[name].doc_md or "") for name in pipelines)
    assert bag.dags["every"].get_task("v2").task_id == "v2"


def test_different_schedules_leave_no_manifest(roots):
    """Two statements that want other times are refused at both places; the DAG stands without a schedule until one is chosen."""
    folder = roots / "pipelines" / "two"
    with pytest.raises(UnsupportedArgument) as caught:
        validated(folder, HOURLY, MORNING)
    assert caught.value.where == "transformations/views.sql:2, and before at transformations/views.sql:1"
    assert 'schedule: "0 * * * *"' in caught.value.remedy
    assert not (folder / "manifest.json").exists()
