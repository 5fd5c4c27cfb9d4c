"""What Airflow's OpenLineage provider sends where a pipeline's DAG runs."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.dags.airflow_home import CHECKOUT

from headwater.definitions.source import SourceKind
from headwater.graph.manifest import ColumnEntry, SourceEntry, read_manifest

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    pytest.mark.skipif(
        importlib.util.find_spec("openlineage") is None, reason="the OpenLineage provider is not installed"
    ),
]
DAG = """
import os
from headwater_airflow.driver import submission
from headwater_airflow.dag import PipelineDag

submission.spark_submit = lambda: os.environ["FAKE_SUBMIT"]
submission.java_environment = dict
submission.submit_conf = lambda conf, local: {}
dag = PipelineDag("medallion")
"""
COLUMNS = (ColumnEntry(name="id", type="int"), ColumnEntry(name="paid", type="decimal(10,2)"))


def resolved_by_an_update(pipeline: Path, state: Path) -> None:
    """The manifest as an update leaves it: `bronze` reads a topic, `silver` reads `bronze` and keeps rows out."""
    manifest = read_manifest(pipeline / "manifest.json")
    assert manifest is not None
    bronze, silver, gold = manifest.datasets
    topic = SourceEntry(
        kind=SourceKind.KAFKA,
        streaming=True,
        name="orders",
        options={"kafka.bootstrap.servers": "broker:9092"},
    )
    table = SourceEntry(kind=SourceKind.DATASET, streaming=True, name="bronze", location="shop/bronze")
    first, second, third = manifest.flows
    changed = manifest.model_copy(
        update={
            "datasets": (
                bronze.model_copy(update={"columns": COLUMNS}),
                silver.model_copy(update={"quarantine": "shop/silver_quarantine"}),
                gold,
            ),
            "flows": (
                first.model_copy(update={"sources": (topic,)}),
                second.model_copy(update={"sources": (table,)}),
                third,
            ),
        }
    )
    state.mkdir(parents=True)
    (state / "manifest.json").write_text(changed.to_json())


def sent(folder: Path) -> list[dict]:
    """Run the DAG in an Airflow that sends its events to a file."""
    events, submit = folder / "events.jsonl", folder / "spark-submit"
    floors = [str(CHECKOUT / floor) for floor in ("include", "jobs", "plugins")]
    (folder / "dags").mkdir()
    (folder / "dags" / "medallion.py").write_text(DAG)
    variables = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(events), "append": True}
        ),
        "FAKE_SUBMIT": str(submit),
        "PYTHONPATH": os.pathsep.join([*floors, str(CHECKOUT)]),
    }
    command = [sys.executable, "-m", "airflow", "dags", "test", "medallion"]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in events.read_text().splitlines()]


def test_each_task_sends_what_its_table_is_made_of(roots, medallion, driver):
    """A run's events have, as they leave Airflow, the edges with the quarantine, the columns and the rows written."""
    resolved_by_an_update(roots / "pipelines" / "medallion", medallion)
    driver.will({"flows": {"bronze": 3, "silver": 2, "gold": 0}})
    ended = {e["job"]["name"]: e for e in sent(roots) if e["eventType"] == "COMPLETE"}
    shop = roots / "warehouse" / "shop"
    bronze, silver = ended["medallion.bronze"], ended["medallion.silver"]
    assert [(node["namespace"], node["name"]) for node in bronze["inputs"]] == [
        ("kafka://broker:9092", "orders")
    ]
    assert [(node["namespace"], node["name"]) for node in bronze["outputs"]] == [
        ("file", str(shop / "bronze"))
    ]
    facets = bronze["outputs"][0]["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in facets] == [("id", "int"), ("paid", "decimal(10,2)")]
    assert bronze["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert [node["name"] for node in silver["inputs"]] == [str(shop / "bronze")]
    assert [node["name"] for node in silver["outputs"]] == [
        str(shop / "silver"),
        str(shop / "silver_quarantine"),
    ]
