"""A pipeline whose landing, storage and warehouse are on S3, in a running Airflow: only the first update needs a JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from tests.dags.live_airflow import PASSWORD, LiveAirflow, wait_for
from tests.object_stores import StoreServer, store_server

from headwater.checkpoints.layout import flow_checkpoint
from headwater.storage.place import place_of
from headwater.storage.walking import files_below, remove_tree
from headwater_airflow.page.addresses import PREFIX

pytestmark = pytest.mark.timeout(300)
# The keys to the store, of the services' environment and of the pipeline's connection: they may show up nowhere.
CANARY = "canary-8d1be40c77"
OF_LAKE = "canary-5a02c6f913"
DAG_FILE = """
import json
import os
from datetime import datetime, timedelta

from airflow.sdk import DAG

from headwater_airflow.changes import DeltaTableAsset, changes
from headwater_airflow.dag import PipelineCheckDag, PipelineDag, PipelineMaintenanceDag, PipelineRepairDag
from headwater_airflow.sensors.lag import LagSensor

settings = {"default_args": {"retries": 0}, "schedule": None}
lake = PipelineDag("lake", **settings)
repair = PipelineRepairDag("lake", **settings)
checks = PipelineCheckDag("lake", schedule=None)
maintenance = PipelineMaintenanceDag("lake", **settings)

with DAG("caught_up", schedule=None, start_date=datetime(2025, 1, 1)):
    LagSensor(task_id="lag", pipeline="lake", max_files=0, poke_interval=0.5, timeout=100)

with DAG("woken", schedule=[DeltaTableAsset("shop.purchases")], start_date=datetime(2025, 1, 1), catchup=False):

    @changes("shop.purchases", form="arrow", retries=1, retry_delay=timedelta(seconds=0))
    def note(changes, change_range):
        line = {"dag": "woken", "ids": sorted(changes["id"].to_pylist()), "to": change_range.end_version}
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(json.dumps(line) + "\\n")

    note()
"""
SPEC = """
name: lake
schema: shop
configuration: {landing: "s3://lake/landing"}
spark: {spark.sql.shuffle.partitions: "1"}
airflow: {dags: [], alerts: {freshness_minutes: 60}, store_connection: lake_store}
"""
SOURCE = """
from headwater import pipelines as dp

@dp.table(table_properties={"delta.enableChangeDataFeed": "true"})
@dp.expect_or_drop("positive", "amount > 0")
def purchases():
    return spark.readStream.schema("id INT, amount INT").json(spark.conf.get("landing"))
"""


@pytest.fixture
def moved_airflow(live_airflow: LiveAirflow) -> Iterator[LiveAirflow]:
    """The running Airflow with its roots on a store; the pipeline's keys are in a connection alone, others in the services' environment."""
    folder = live_airflow.folder / "on_a_store"
    transformations = folder / "pipelines" / "lake" / "transformations"
    transformations.mkdir(parents=True)
    (transformations.parent / "pipeline.yml").write_text(SPEC)
    (transformations / "purchases.py").write_text(SOURCE)
    (folder / "dags").mkdir()
    (folder / "dags" / "lake.py").write_text(DAG_FILE)
    with store_server() as server:
        server.make_bucket("lake")
        live_airflow.move(
            **{**server.environment(), "AWS_ACCESS_KEY_ID": "of-services", "AWS_SECRET_ACCESS_KEY": CANARY},
            AIRFLOW__CORE__DAGS_FOLDER=str(folder / "dags"),
            HEADWATER_PIPELINES=str(folder / "pipelines"),
            HEADWATER_STORAGE="s3://lake/storage",
            HEADWATER_WAREHOUSE="s3://lake/warehouse",
            HEADWATER_LOG_FORMAT="json",
        )
        live_airflow.client._request("POST", "/connections", json=_connection(server))
        live_airflow.store = server
        yield live_airflow


def _connection(server: StoreServer) -> dict[str, str]:
    extra = json.dumps({"endpoint_url": server.endpoint, "region_name": "us-east-1"})
    login = {"connection_id": "lake_store", "conn_type": "aws", "login": "of-lake", "password": OF_LAKE}
    return {**login, "extra": extra}


class CommandLines(threading.Thread):
    """Looks, several times a second, for keys on any command line, and for a driver that has them in its environment."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.with_a_key: set[str] = set()
        self.drivers = 0

    def run(self) -> None:
        while not self.ended.wait(0.2):
            for process in psutil.process_iter():
                try:
                    line = " ".join(process.cmdline())
                    if CANARY in line or OF_LAKE in line or "of-lake" in line:
                        self.with_a_key.add(line[:200])
                    if "run_update.py" in line and "java" in line:
                        self.drivers += process.environ().get("AWS_SECRET_ACCESS_KEY") == OF_LAKE
                except psutil.Error:
                    continue


def land(name: str, *rows: tuple[int, int]) -> None:
    """An object with a row a line: id, amount."""
    lines = [json.dumps({"id": id_, "amount": amount}) for id_, amount in rows]
    place_of(f"s3://lake/landing/{name}.json").write_text("\n".join(lines))


def ended(airflow: LiveAirflow, dag_id: str, run_id: str) -> dict[str, str]:
    """The states of a run's tasks, once it has ended."""
    wait_for(
        lambda: any(run.run_id == run_id and run.is_finished for run in airflow.client.runs(dag_id)),
        120,
        every=0.3,
    )
    return {task.task_id: task.state for task in airflow.client.tasks(dag_id, run_id)}


def logs(airflow: LiveAirflow, dag_id: str, run_id: str) -> str:
    """What the tasks of a run have logged."""
    folder = Path(airflow.services.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}")
    return "\n".join(file.read_text() for file in sorted(folder.glob("**/*.log")))


def test_a_pipeline_on_s3_is_updated_watched_shown_and_repaired(moved_airflow):
    """The sensor and the woken DAG follow the one real update; page, metrics and verbs need no JVM; the store's keys are nowhere."""
    airflow = moved_airflow
    client = airflow.client
    command_lines = CommandLines()
    command_lines.start()
    land("1", (1, 5), (2, 7), (3, -1))
    client.wait_for_dag("woken", 60)
    for dag_id in ("lake", "lake_repair", "lake_checks", "lake_maintenance", "caught_up", "woken"):
        client.pause(dag_id, paused=False)
    client.trigger("lake", "first")
    client.trigger("caught_up", "run")
    assert ended(airflow, "lake", "first") == {"update": "success"}, logs(airflow, "lake", "first")[-4000:]
    said = [json.loads(line)["event"] for line in logs(airflow, "lake", "first").split("\n") if line]
    of_the_driver = [json.loads(event) for event in said if event.startswith('{"time"')]
    assert ("lake", "purchases") in {(line["pipeline"], line["flow"]) for line in of_the_driver}
    assert ended(airflow, "caught_up", "run") == {"lag": "success"}
    wait_for(lambda: [note["ids"] for note in airflow.notes("woken")] == [[1, 2]], 30)

    client.trigger("lake", "quiet")
    client.trigger("lake_checks", "look")
    client.trigger("lake_maintenance", "look")
    assert ended(airflow, "lake", "quiet") == {"update": "success"}
    assert "no JVM was started" in logs(airflow, "lake", "quiet")
    checks = ended(airflow, "lake_checks", "look")
    assert checks == dict.fromkeys(("lag", "freshness", "checkpoints"), "success"), logs(
        airflow, "lake_checks", "look"
    )
    assert ended(airflow, "lake_maintenance", "look")["plan"] == "success", logs(
        airflow, "lake_maintenance", "look"
    )

    # What only the doctor can put right.
    epoch = flow_checkpoint(
        place_of("s3://lake/storage/pipelines/lake"), "purchases", "purchases"
    ).epoch_folder(0)
    for part in ("offsets", "commits"):
        remove_tree(epoch / part)
    token = httpx.post(
        f"{airflow.services.address}/auth/token", json={"username": "vera", "password": PASSWORD}
    )
    with httpx.Client(
        base_url=airflow.services.address, cookies={"_token": token.json()["access_token"]}, timeout=60
    ) as browser:
        pages = {
            page: browser.get(f"{PREFIX}{page}")
            for page in (
                "/",
                "/pipelines/lake",
                "/pipelines/lake/flows/purchases",
                "/pipelines/lake/checkpoints",
                "/pipelines/lake/advice",
                "/metrics",
            )
        }
        assert {page: answer.status_code for page, answer in pages.items()} == dict.fromkeys(pages, 200)
        assert "CHECKPOINT_REWOUND" in pages["/pipelines/lake/checkpoints"].text
        figures = pages["/metrics"].text
        assert 'headwater_pipeline_readable{pipeline="lake"} 1' in figures
        assert 'headwater_last_update_state{pipeline="lake",state="COMPLETED"} 1' in figures
        client.trigger("lake_repair", "repair", flow="purchases", action="rebuild", dry_run=False)
        assert ended(airflow, "lake_repair", "repair") == {"plan": "success", "repair": "success"}, logs(
            airflow, "lake_repair", "repair"
        )
        mended = browser.get(f"{PREFIX}/pipelines/lake/checkpoints").text
        assert "CHECKPOINT_REWOUND" not in mended

    command_lines.ended.set()
    assert command_lines.with_a_key == set()
    assert command_lines.drivers, "the driver has the connection's keys in its environment"
    # What is no pipeline's own goes by the environment; everything of the pipeline by its connection.
    # (A removal of several objects has their names in its body.)
    used = {key: places - {"lake/?delete"} for key, places in airflow.store.keys().items()}
    assert used["of-services"] == {"lake/storage/change_feeds", "lake/warehouse/shop"}
    assert used["of-lake"] >= {"lake/landing", "lake/storage/pipelines", "lake/warehouse/shop"}
    assert set(used) == {"of-services", "of-lake", "of-the-test"}

    secrets = (CANARY, OF_LAKE)
    texts = [answer.text for answer in pages.values()] + [mended]
    texts += [file.read_text(errors="replace") for file in airflow.services.home.rglob("*.log")]
    assert [text[:200] for text in texts for secret in secrets if secret in text] == []
    for place in (place_of("s3://lake/storage"), place_of("s3://lake/warehouse")):
        stored = [file for file, about in files_below(place) if about.st_size]
        assert stored
        contents = {str(file): file.read_bytes() for file in stored}
        assert [file for file, data in contents.items() for one in secrets if one.encode() in data] == []
    database = airflow.database()
    assert "lake_repair" in database
    assert "lake_store" in database
    for secret in secrets:
        assert secret not in database
        assert secret.encode().hex() not in database
