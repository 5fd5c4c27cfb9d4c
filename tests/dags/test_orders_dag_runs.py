"""The real DAG of the pipeline `orders`, run by Airflow with real spark-submit, a real broker and real tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from headwater.event_log.reader import flow_results, updates
from headwater.graph.manifest import read_manifest
from headwater.graph.pipeline_project import open_project
from headwater.local_stack.kafka_broker import KafkaBroker
from headwater.local_stack.sample_data import SampleData
from headwater.local_stack.sample_delivery import TOPIC, Destination
from headwater_airflow.request import request_id
from tests.dags.airflow_home import CHECKOUT

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.timeout(600)]
TABLES = {
    "orders_bronze",
    "clicks_bronze",
    "customers_bronze",
    "orders_silver",
    "customers",
    "orders_enriched",
    "revenue_by_day_and_country",
    "top_products",
}


@pytest.fixture
def shop(roots, monkeypatch):
    """The pipeline's folder, a broker and a landing folder of this test's own; gives where data is sent to."""
    with KafkaBroker(roots / "kafka") as broker:
        broker.create_topic(TOPIC, 2)
        destination = Destination(broker.bootstrap_servers, roots / "landing")
        destination.prepare()
        monkeypatch.setenv("HEADWATER_KAFKA", broker.bootstrap_servers)
        monkeypatch.setenv("HEADWATER_LANDING", str(destination.landing))
        folder = roots / "pipelines" / "orders"
        shutil.copytree(CHECKOUT / "jobs" / "pipelines" / "orders", folder)
        manifest = read_manifest(folder / "manifest.json")
        if manifest is None or manifest.source_hash != open_project(folder).source_hash():
            command = [sys.executable, "-m", "headwater", "validate", str(folder), "--json"]
            subprocess.run(command, check=True, timeout=180, cwd=CHECKOUT)
        yield destination


def run_orders():
    """Parse the DAG file of this project and run the DAG once; gives the run and its tasks' states."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(CHECKOUT / "dags")
    assert bag.import_errors == {}
    run = bag.dags["orders"].test()
    return run, {task.task_id: str(task.state) for task in run.get_task_instances()}


def rows_by_dataset(state_folder, run):
    """Rows in and out of each dataset, over its flows, in a run."""
    found = {}
    for result in flow_results(state_folder, request_id=request_id("orders", run.run_id)):
        before = found.get(result.dataset, (0, 0))
        found[result.dataset] = (before[0] + result.input_rows, before[1] + result.output_rows)
    return found


def test_two_updates_take_in_exactly_what_arrived_and_a_third_finds_nothing(shop, roots):
    """Kafka and files become tables; the second run reads what came after the first; the third starts no JVM."""
    state_folder = roots / "storage" / "pipelines" / "orders"
    data = SampleData(7, "dag")
    for size in (120, 60):
        counts = shop.deliver(data.lot(size, datetime.now(UTC)))
        run, tasks = run_orders()
        assert tasks == dict.fromkeys({"update", *TABLES}, "success")
        rows = rows_by_dataset(state_folder, run)
        assert rows["orders_bronze"] == (counts.messages, counts.messages)
        assert rows["clicks_bronze"] == (counts.clicks, counts.clicks)
        assert rows["customers_bronze"] == (counts.customers, counts.customers)
    begun = time.monotonic()
    run, tasks = run_orders()
    seconds = time.monotonic() - begun
    assert set(tasks.values()) == {"success"}
    assert updates(state_folder)[-1].request_id == request_id("orders", run.run_id)
    assert "no source has moved" in updates(state_folder)[-1].message
    assert seconds < 60
