"""All of Airflow for the tests that need it running: started once in a session, with DAGs, tables and users of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
from cryptography.fernet import Fernet
from deltalake import DeltaTable, write_deltalake
from tests.dags import airflow_home
from tests.dags.observed_pipeline import write_observed_pipeline
from tests.dags.web_hook import WebHook
from tests.postgres_server import Postgres

from headwater.runtime.ports import free_port
from headwater_demo.airflow_services import SERVICES, AirflowServices
from headwater_demo.processes import ProcessTable

# No role: may log in, and do nothing else.
USERS = {"admin": "admin", "vera": "viewer", "otto": "op", "nora": ""}
PASSWORD = "only-for-this-test"
# The password of the Spark connection and a secret of the pipeline: it may show up nowhere.
CANARY = "canary-2f9c71d0e4"

DAGS = """
from __future__ import annotations

import json
import os
from datetime import datetime, timedelta

from airflow.sdk import DAG

from headwater_airflow.driver import submission
from headwater_airflow.changes import DeltaTableAsset, changes
from headwater_airflow.dag import PipelineBackfillDag, PipelineCheckDag, PipelineDag, PipelineRepairDag
from headwater_airflow.notifications.webhook import WebhookNotifier
from headwater_airflow.sensors.change_feed import ChangeFeedSensor
from headwater_airflow.sensors.table_version import TableVersionSensor

pipeline = PipelineDag("medallion")
pipeline_repair = PipelineRepairDag("medallion")
pipeline_checks = PipelineCheckDag("medallion", notifiers=[WebhookNotifier("hook")])

# In the place of Spark: a driver that takes the lease and works in batches. No Java, no jars.
submission.spark_submit = lambda: os.environ["FAKE_STREAM"]
submission.java_environment = dict
submission.submit_conf = lambda conf, local: {}
stream = PipelineDag("stream", default_args={"retries": 0})
asked = PipelineDag("asked")
backfill = PipelineBackfillDag("stream", interval="@daily", tables=["t"], column="at", default_args={"retries": 0})


def consumer(name, asset):
    with DAG(name, schedule=[asset], start_date=datetime(2025, 1, 1), catchup=False) as dag:

        @changes("shop.orders", form="arrow", retries=1, retry_delay=timedelta(seconds=0))
        def note(changes, change_range):
            line = {**change_range.as_dict(), "dag": name, "ids": sorted(changes["id"].to_pylist())}
            with open(os.environ["NOTES"], "a") as notes:
                notes.write(json.dumps(line) + "\\n")

        note()
    return dag


every_change = consumer("every_change", DeltaTableAsset("shop.orders"))
only_deletes = consumer("only_deletes", DeltaTableAsset("shop.orders", types=["delete"]))

with DAG("waits", schedule=None, start_date=datetime(2025, 1, 1)) as waits:
    TableVersionSensor(task_id="met", table="shop.waited_for", version=1, poke_interval=0.5, timeout=100)
    TableVersionSensor(task_id="late", table="shop.waited_for", version=99, poke_interval=0.5, timeout=12)
    ChangeFeedSensor(task_id="in_vain", table="shop.made_anew", after_version=5, poke_interval=0.5, timeout=100)
"""

STREAM = """
name: stream
schema: shop
trigger: {processing_time: 1 second, run_for: 2 seconds}
airflow: {retries: 0, dags: []}
"""

# A parameter of each kind; nobody runs it.
ASKED = """
name: asked
schema: shop
airflow: {dags: []}
parameters:
  region: {required: true, description: Which region it is for}
  day: {type: date, default: 2026-03-01}
  limit: {type: integer, default: 5}
  fast: {type: boolean, default: true}
  kind: {enum: [all, new], default: new}
"""


class LiveAirflow:
    """Airflow's services over one folder."""

    def __init__(
        self, folder: Path, processes: ProcessTable, hook: WebHook, database: Postgres | None
    ) -> None:
        self.folder = folder
        self.hook = hook
        self.postgres = database
        self.notes_file = folder / "notes.jsonl"
        floors = [str(airflow_home.CHECKOUT / floor) for floor in ("include", "jobs", "plugins")]
        home = folder / "airflow"
        home.mkdir(mode=0o700)
        if database is None:
            shutil.copy(airflow_home.HOME / "airflow.db", home / "airflow.db")
        (folder / "dags").mkdir()
        (folder / "dags" / "live.py").write_text(DAGS)
        write_observed_pipeline(
            folder, airflow="{dags: [], check_schedule: null, alerts: {freshness_minutes: 0}}"
        )
        stream = folder / "pipelines" / "stream"
        stream.mkdir()
        (stream / "pipeline.yml").write_text(STREAM)
        asked = folder / "pipelines" / "asked"
        asked.mkdir()
        (asked / "pipeline.yml").write_text(ASKED)
        submit = folder / "spark-submit"
        submit.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.dags.fake_stream "$@"\n')
        submit.chmod(0o755)
        variables = {
            "FAKE_STREAM": str(submit),
            "STREAM_NOTES": str(folder / "stream.jsonl"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": "local[*]", "login": "spark", "password": CANARY}
            ),
            "HEADWATER_SECRET_SHOP_KEY": CANARY,
            # What was left by a scheduler that was killed is seen to after seconds, and no step waits long for the next.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
            # It beats every five: one that a busy machine holds up for a beat or two must not take its own tasks for a dead one's.
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
            # New files are seen at once. Known ones are parsed again every ten seconds: only then a DAG that was unpaused is woken.
            "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.airflow
            if database
            else f"sqlite:///{home}/airflow.db",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{u}:{role}" for u, role in USERS.items()),
            # Each service would make up one of its own where no home was migrated.
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
            "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(48),
            # For connections in the database, and for triggers that outlive a restart.
            "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "4",
            "HEADWATER_CHANGE_POLL_SECONDS": "0.3",
            "HEADWATER_DATA_POLL_SECONDS": "0.3",
            "HEADWATER_HOME": str(airflow_home.CHECKOUT),
            "HEADWATER_PIPELINES": str(folder / "pipelines"),
            "HEADWATER_STORAGE": str(folder / "storage"),
            "HEADWATER_WAREHOUSE": str(folder / "warehouse"),
            "NOTES": str(self.notes_file),
            "AIRFLOW_CONN_HOOK": hook.connection,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join([*floors, str(airflow_home.CHECKOUT)]),
        }
        self.variables = variables
        self.services = AirflowServices(airflow_home.CHECKOUT, home, free_port(), processes, variables)
        self.services.password_file.write_text(json.dumps(dict.fromkeys(USERS, PASSWORD)))
        self.services.password_file.chmod(0o600)

    def start(self) -> None:
        """Start everything, and wait until it works."""
        self.services.migrate()
        self.services.start()
        self.services.wait_until_healthy()
        self.client = self.services.client()
        self.client.wait_for_dag("waits", 60)

    def kill(self, service: str) -> None:
        """SIGKILL to a service and all that it started."""
        child = next(child for child in self.services.processes.children if child.name == service)
        child.kill()
        self.services.processes.children.remove(child)

    def end(self) -> None:
        """SIGKILL to all services: nothing is left to be put in order, and a triggerer takes its time."""
        for child in list(self.services.processes.children):
            self.kill(child.name)

    def restart(self, service: str) -> None:
        """Start a service that was killed."""
        self.services._start(service, SERVICES[service])

    def move(self, **variables: str) -> None:
        """Start all services again with other variables; Airflow's database and what it knows stay."""
        self.end()
        self.variables.update(variables)
        self.services.start()
        self.services.wait_until_healthy()

    def table(self, name: str) -> Path:
        """The folder of a table of the schema `shop`."""
        return self.folder / "warehouse" / "shop" / name

    def commit(self, name: str, *ids: int) -> int:
        """Add rows to a table; returns its version."""
        write_deltalake(
            self.table(name),
            pa.table({"id": list(ids)}),
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
        return DeltaTable(self.table(name)).version()

    def notes(self, dag_id: str) -> list[dict]:
        """What the consumers wrote down, in the order in which they did."""
        lines = self.notes_file.read_text().splitlines() if self.notes_file.exists() else []
        return [line for line in map(json.loads, lines) if line["dag"] == dag_id]

    def database(self) -> str:
        """All that Airflow's database holds, as text; bytes also in hexadecimal."""
        if self.postgres is not None:
            return self.postgres.dump()
        data = b"".join(file.read_bytes() for file in self.services.home.glob("airflow.db*"))
        return f"{data.decode(errors='replace')}\n{data.hex()}"

    def finished_runs(self, dag_id: str) -> int:
        """How many runs of a DAG have ended."""
        return sum(run.is_finished for run in self.client.runs(dag_id))

    def last_lines(self) -> str:
        """The end of each service's log, for a failed test."""
        logs = {name: self.services.log(name) for name in SERVICES}
        return "\n".join(
            f"{name}:\n{textwrap.indent(log.read_text(errors='replace')[-6000:], '    ')}"
            for name, log in logs.items()
            if log.exists()
        )


def wait_for(condition, seconds: float = 60, every: float = 0.2, instead=None):
    """Ask until the answer is true; returns it. Fails after `seconds`, and says what `instead` gives then."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, (
            f"not within {seconds} seconds: {instead() if instead else answer}"
        )
        time.sleep(every)
    return answer


def wait_until_equal(value, expected, seconds: float = 60):
    """Ask until the value is the expected one; fails after `seconds` with the last one."""
    wait_for(lambda: value() == expected, seconds, instead=value)
