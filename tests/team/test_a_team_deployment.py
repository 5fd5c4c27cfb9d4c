"""docker-compose.yaml without containers: every service by its own command, two schedulers, and one of them killed in mid-update.

``make test-team``; needs root (namespaces, Postgres' own user) and Postgres.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.dags.live_airflow import wait_for
from tests.team.containers import Stack, container_of
from tests.team.drivers import Drivers, without_forks
from tests.team.landed_pipelines import FILES, ROWS, write_pipelines
from tests.team.postgres import postgres
from tests.team.written import ids, updates_of

from headwater_demo.airflow_client import AirflowClient

pytestmark = pytest.mark.timeout(540)
PIPELINES = ("north", "south", "west")
SPARK = """\
  spark.executor.memory: 600m
  spark.executor.instances: "1"
"""
# Airflow's own waits are minutes: for a scheduler that is silent, and for tasks of one that is gone.
SOONER = {
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services of the file, by their commands, in the file's order, each waited for as the file says."""
    assert os.geteuid() == 0, "make test-team needs root"
    running = Stack(tmp_path_factory.mktemp("team"), **SOONER)
    write_pipelines(running, dict.fromkeys(PIPELINES, 'schedule: "* * * * *"'), SPARK)
    secret, database = running.secret("postgres_password"), running.services["postgres"]
    try:
        with postgres(database, secret, running.addresses["postgres"]):
            started = time.monotonic()
            running.start("kafka")
            running.run_to_end("spark-conf")
            running.start("spark-master")
            running.run_to_end("airflow-init")
            running.wait_healthy("kafka", "spark-master")
            running.start("sample-data")
            for number in (1, 2):
                running.start("spark-worker", f"spark-worker-{number}")
                running.start("airflow-scheduler", f"airflow-scheduler-{number}")
            for service in ("airflow-api-server", "airflow-dag-processor", "airflow-triggerer"):
                running.start(service)
            running.wait_healthy(
                *(
                    name
                    for name in running.containers
                    if name.startswith("airflow-") and name != "airflow-init"
                )
            )
            print(f"all services are healthy after {time.monotonic() - started:.0f} s")
            yield running
            for name, container in running.containers.items():
                print(f"--- {name}\n{container.log.read_text(errors='replace')[-600:]}")
            running.end()
    finally:
        running.end()


@pytest.fixture(scope="module")
def client(stack: Stack) -> AirflowClient:
    """Airflow's interface, with the password that the file's secret is."""
    password = stack.secret("airflow_admin_password").read_text().strip()
    return AirflowClient("http://127.0.0.1:8080", "admin", password)


def test_a_fork_of_a_driver_is_none_of_its_own():
    """Two drivers of one pipeline stay two, whoever started them; what a driver starts is not counted."""
    scheduler, driver, fork, second = (SimpleNamespace(pid=pid) for pid in (1, 2, 3, 4))
    found: Any = [
        ("north", driver, scheduler.pid),
        ("north", fork, driver.pid),
        ("north", second, scheduler.pid),
    ]
    assert [process for _, process, _ in without_forks(found)] == [driver, second]


def test_a_scheduler_is_killed_in_mid_update_and_nothing_runs_twice(stack: Stack, client: AirflowClient):
    """The other scheduler finds the update again: one driver of a pipeline at a time, two in all by the pool, each row once."""
    for name in PIPELINES:
        client.wait_for_dag(name, 60)
    drivers = Drivers(PIPELINES)
    drivers.start()
    for name in PIPELINES:
        client.pause(name, paused=False)
    first = PIPELINES[0]
    wait_for(lambda: first in drivers.now and len(ids(stack, first)) >= 2 * ROWS, 240, every=0.3)
    killed = container_of(stack, drivers.now[first])
    (run,) = [run for run in client.runs(first) if not run.is_finished]
    killed.kill()
    written = len(ids(stack, first))
    print(f"{killed.name} was killed when {written} of {FILES * ROWS} rows were written")
    assert written < FILES * ROWS

    def is_over() -> bool:
        return any(one.run_id == run.run_id and one.is_finished for one in client.runs(first))

    wait_for(is_over, 300, every=1)
    wait_for(lambda: all(len(ids(stack, name)) == FILES * ROWS for name in PIPELINES), 240, every=1)

    def rests() -> bool:
        """Each minute a run begins, and one of a DAG that is paused goes no further."""
        for name in PIPELINES:
            client.pause(name, paused=True)
        if all(one.is_finished for name in PIPELINES for one in client.runs(name)):
            return True
        for name in PIPELINES:
            client.pause(name, paused=False)
        return False

    wait_for(rests, 180, every=5)
    drivers.ended.set()
    print(f"{drivers.forks} JVMs were seen while they started a program")
    (attempt,) = client.tasks(first, run.run_id)[:1]
    assert next(one.state for one in client.runs(first) if one.run_id == run.run_id) == "success"
    assert attempt.attempt >= 2
    assert {name: ids(stack, name) for name in PIPELINES} == {
        name: list(range(FILES * ROWS)) for name in PIPELINES
    }
    assert drivers.seen == set(PIPELINES)
    assert drivers.most_of_one == 1, drivers.together
    assert drivers.most_of_all == 2, drivers.together
    *before, last = updates_of(stack, first, run.run_id)
    assert (last, "COMPLETED" in before) == ("COMPLETED", False)
    assert before, "the killed attempt has its record under the same request"


def test_no_service_but_airflows_web_server_sees_passwords(stack: Stack):
    """The file with them is in no container that runs tasks, triggers, DAG files or Spark; secrets are where the file names them."""
    file = "/opt/airflow-passwords/passwords.json"
    alive = {name: one for name, one in stack.containers.items() if one.outer.poll() is None}
    assert {name for name, one in alive.items() if one.run("test", "-e", file).returncode == 0} == {
        "airflow-api-server"
    }
    for name, one in alive.items():
        seen = set(one.run("ls", "/run/secrets").stdout.split())
        assert seen == {secret["source"] for secret in one.service.get("secrets", ())}, name
