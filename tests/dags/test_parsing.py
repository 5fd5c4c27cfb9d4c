"""What the DAG processor pays, and does not pay, for pipelines."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.dags.airflow_home import CHECKOUT
from tests.dags.pipeline_folder import write_pipeline

PROBE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
import headwater_airflow.dag
def parse(folder):
    # Of the processor: how long it takes says how busy the machine is.
    started = time.process_time()
    bag = DagBag(folder)
    return bag, time.process_time() - started
seconds, bags = [], []
for folder in sys.argv[1:]:
    bag, took = parse(folder)
    bags.append(bag); seconds.append(took)
print(json.dumps({
    "errors": [dict(bag.import_errors) for bag in bags],
    "dags": [sorted(bag.dags) for bag in bags],
    "fileloc": {name: dag.fileloc for bag in bags for name, dag in bag.dags.items()},
    "serialized": [{n: DagSerialization.to_dict(d) for n, d in bag.dags.items()} for bag in bags],
    "seconds": seconds,
    "heavy": sorted({"pyspark", "deltalake", "pandas", "pyarrow", "confluent_kafka", "delta"} & set(sys.modules)),
}, default=str, sort_keys=True))
"""


@pytest.fixture
def parse(airflow_database, roots):
    """Parse folders of DAGs in a process of its own."""

    def run(*folders):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(CHECKOUT / floor) for floor in ("include", "jobs", "plugins")),
        }
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *map(str, folders)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_the_dags_of_this_project_parse_without_errors_and_without_spark(parse, monkeypatch):
    """The DAG files parse, are shown as their own files, and load neither Spark nor Delta nor pandas."""
    monkeypatch.delenv("HEADWATER_PIPELINES")
    parsed = parse(CHECKOUT / "dags")
    assert parsed["errors"] == [{}]
    kinds = ("", "_backfill", "_checks", "_maintenance", "_repair")
    assert parsed["dags"][0] == sorted([*(f"orders{kind}" for kind in kinds), "revenue_changes"])
    assert parsed["fileloc"]["orders"] == str(CHECKOUT / "dags" / "pipelines.py")
    assert "CronDataInterval" in json.dumps(parsed["serialized"][0]["orders_backfill"]["dag"]["timetable"])
    assert parsed["heavy"] == []


TABLES = {f"table_{n}": ([f"table_{n - 1}"] if n else []) for n in range(10)}
READER = """
from airflow.sdk import DAG
from headwater_airflow.arrivals import PipelineDataAsset
from headwater_airflow.changes import DeltaTableAsset

dag = DAG("reader", schedule=[DeltaTableAsset("shop.gold", types=["delete"], min_rows=5), PipelineDataAsset("on_data", files=5)])
"""


def test_fifty_pipelines_cost_little_and_each_parse_gives_the_same_dags(parse, roots):
    """Fifty pipelines of ten tables cost less than three seconds, and a DAG is serialized alike in each process: no new version of it."""
    empty, full, folder = (roots / name for name in ("empty", "full", "dags"))
    for made in (empty, full, folder):
        made.mkdir()
    for number in range(50):
        write_pipeline(roots / "pipelines" / f"generated_{number}", TABLES, airflow="{dags: []}")
        (full / f"generated_{number}.py").write_text(
            f"from headwater_airflow.dag import PipelineDag\n\ndag = PipelineDag('generated_{number}')\n"
        )
    write_pipeline(roots / "pipelines" / "medallion")
    write_pipeline(roots / "pipelines" / "on_data", airflow="{schedule: on_data}")
    (folder / "pipelines.py").write_text((CHECKOUT / "dags" / "pipelines.py").read_text())
    (folder / "reader.py").write_text(READER)
    first, second = parse(folder, empty, full), parse(folder)
    assert (first["errors"], second["errors"]) == ([{}, {}, {}], [{}])
    assert len(first["dags"][2]) == 50
    assert first["seconds"][2] - first["seconds"][1] < 3
    assert first["heavy"] == second["heavy"] == []

    serialized = first["serialized"][0]
    assert serialized == second["serialized"][0]
    assert len(serialized) == 11
    assert "headwater_airflow.triggers.change_feed" in json.dumps(serialized["reader"])
    for dag in ("reader", "on_data"):
        assert "headwater_airflow.triggers.data_arrival" in json.dumps(serialized[dag])
    for dag in serialized.values():
        text = json.dumps({**dag["dag"], "fileloc": ""})
        for root in ("storage", "pipelines", "warehouse"):
            assert str(roots / root) not in text
