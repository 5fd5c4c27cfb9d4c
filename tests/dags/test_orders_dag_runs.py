"""The real DAG of the pipeline `orders`, run by Airflow with real spark-submit, a real broker and real tables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from tests.dags.airflow_home import CHECKOUT

from headwater.event_log.reader import events, flow_results, updates
from headwater.graph.manifest import read_manifest
from headwater.graph.pipeline_project import open_project
from headwater_airflow.following.request import request_id
from headwater_demo.kafka_broker import KafkaBroker
from headwater_demo.sample_data import SampleData
from headwater_demo.sample_delivery import TOPIC, Destination

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
        spec = folder / "pipeline.yml"
        spec.write_text(spec.read_text().replace("retries: 2", "retries: 2\n  retry_delay: 1 s"))
        yield destination


def run_orders(dag_id="orders", **conf):
    """Parse the DAG files of this project and run a DAG once; gives the run and its tasks' states."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(CHECKOUT / "dags")
    assert bag.import_errors == {}
    run = bag.dags[dag_id].test(run_conf=conf or None)
    return run, {task.task_id: str(task.state) for task in run.get_task_instances()}


def rows_by_dataset(state_folder, run):
    """Rows in and out of each dataset, over its flows, in a run."""
    rows = {}
    for result in flow_results(state_folder, request_id=request_id("orders", run.run_id)):
        before = rows.get(result.dataset, (0, 0))
        rows[result.dataset] = (before[0] + result.input_rows, before[1] + result.output_rows)
    return rows


def kill_driver_when(reached):
    """A thread that sends SIGKILL to Spark's JVM, once `reached` says so; it ends after the first."""

    def watch():
        while not (reached() and (processes := jvms())):
            time.sleep(0.2)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def jvms():
    """The drivers' JVMs that this process has started."""
    import psutil

    children = psutil.Process().children()
    return [child.pid for child in children if "org.apache.spark.deploy.SparkSubmit" in child.cmdline()]


def test_each_update_takes_in_exactly_what_arrived(shop, roots):
    """Kafka and files become tables, though the first driver is killed in the middle: the retry has the same request, no row is
    lost, and none is there twice. The second run reads what came after the first; the third starts no JVM.

    A backfill that is triggered then replaces all clicks by as many.
    """
    from deltalake import DeltaTable

    state_folder = roots / "storage" / "pipelines" / "orders"
    tables = roots / "warehouse" / "shop"
    data = SampleData(7, "dag")

    def bronze_is_written():
        return (tables / "orders_bronze" / "_delta_log" / f"{0:020}.json").exists()

    first = data.lot(200, datetime.now(UTC))
    clicks = shop.deliver(first).clicks
    killer = kill_driver_when(bronze_is_written)
    run, tasks = run_orders()
    killer.join(1)
    assert tasks == dict.fromkeys({"update", *TABLES}, "success")
    assert [update.state for update in updates(state_folder)] == ["FAILED", "COMPLETED"]
    assert {update.request_id for update in updates(state_folder)} == {request_id("orders", run.run_id)}
    bronze = DeltaTable(str(tables / "orders_bronze")).to_pyarrow_table(columns=["message"])
    assert Counter(bronze["message"].to_pylist()) == Counter(message.value for message in first.messages)
    enriched = DeltaTable(str(tables / "orders_enriched")).to_pyarrow_table()
    assert len(set(enriched["order_id"].to_pylist())) == enriched.num_rows == first.counts.orders

    counts = shop.deliver(data.lot(60, datetime.now(UTC)))
    run, tasks = run_orders()
    assert tasks == dict.fromkeys({"update", *TABLES}, "success")
    rows = rows_by_dataset(state_folder, run)
    assert rows["orders_bronze"] == (counts.messages, counts.messages)
    assert rows["clicks_bronze"] == (counts.clicks, counts.clicks)
    clicks += counts.clicks
    assert rows["customers_bronze"] == (counts.customers, counts.customers)

    started = time.monotonic()
    run, tasks = run_orders()
    seconds = time.monotonic() - started
    assert set(tasks.values()) == {"success"}
    assert updates(state_folder)[-1].request_id == request_id("orders", run.run_id)
    assert "no source has moved" in updates(state_folder)[-1].message
    assert seconds < 60
    table = str(tables / "clicks_bronze")
    version = DeltaTable(table).version()
    run, tasks = run_orders("orders_backfill", dry_run=False, **{"from": "2000-01-01", "to": "2100-01-01"})
    assert tasks == {"backfill": "success"}
    (event,) = events(
        state_folder, event_type="operation_progress", request_id=request_id(run.dag_id, run.run_id)
    )
    done = event["details"]["operation_progress"]
    assert (done["type"], done["status"], done["replaced_rows"]) == (
        "BACKFILL",
        "COMPLETED",
        done["output_rows"],
    )
    assert 0 < done["output_rows"] <= clicks == DeltaTable(table).to_pyarrow_table().num_rows
    assert DeltaTable(table).version() == version + 1
