"""docker-compose.celery.yaml without containers: drivers on two workers, as many as the pool has slots, and workers that are killed.

``make test-celery``; needs root (namespaces, Postgres' own user), Postgres and Redis.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import psutil
import pytest
from tests.celery.stack import FILES, PIPELINES, ROWS, SLOTS, celery_stack, land, start_worker
from tests.dags.live_airflow import wait_for
from tests.team.containers import Stack, container_of
from tests.team.drivers import Drivers
from tests.team.written import ids, updates_of

from headwater_demo.airflow_client import AirflowClient

pytestmark = pytest.mark.timeout(540)
SLOW = PIPELINES[0]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The services of both files that updates need."""
    assert os.geteuid() == 0, "make test-celery needs root"
    with celery_stack(tmp_path_factory.mktemp("celery")) as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> AirflowClient:
    """Airflow's interface; all DAGs are there and unpaused."""
    password = stack.secret("airflow_admin_password").read_text().strip()
    made = AirflowClient("http://127.0.0.1:8080", "admin", password)
    for name in PIPELINES:
        made.wait_for_dag(name, 90)
        made.pause(name, paused=False)
    return made


def is_over(client: AirflowClient, name: str, run_id: str) -> bool:
    """Whether a run has ended."""
    return any(one.run_id == run_id and one.is_finished for one in client.runs(name))


def test_updates_run_on_workers_as_many_as_the_pool_has_slots(stack: Stack, client: AirflowClient):
    """Six pipelines at once: two drivers at most, none in the scheduler, one queue served by one worker, each row once."""
    drivers = Drivers(PIPELINES, SLOTS)
    drivers.start()
    ran_in: dict[str, set[str]] = {}
    for name in PIPELINES:
        client.trigger(name, "first")

    def all_are_over() -> bool:
        for name, process in drivers.now.items():
            ran_in.setdefault(name, set()).add(container_of(stack, process).name)
        return all(is_over(client, name, "first") for name in PIPELINES)

    wait_for(all_are_over, 300, every=0.5)
    drivers.ended.set()
    print(ran_in)
    assert {name: ids(stack, name) for name in PIPELINES} == {
        name: list(range(FILES * ROWS)) for name in PIPELINES
    }
    assert drivers.most_of_one == 1, drivers.together
    assert drivers.most_of_all == SLOTS, drivers.together
    assert set().union(*ran_in.values()) <= {"airflow-worker-1", "airflow-worker-2"}
    assert ran_in["heavy"] == {"airflow-worker-2"}
    assert [updates_of(stack, name, "first") for name in PIPELINES] == [["COMPLETED"]] * len(PIPELINES)
    tasks = {task.task_id: task.state for task in client.tasks(SLOW, "first")}
    assert {"update": "success", SLOW: "success"}.items() <= tasks.items()


def in_mid_update(stack: Stack, client: AirflowClient, drivers: Drivers, run_id: str) -> psutil.Process:
    """Give the slow pipeline files, start a run, and return its driver when some of them are written."""
    before = len(ids(stack, SLOW))
    land(stack, SLOW, before // ROWS)
    drivers.now.clear()
    client.trigger(SLOW, run_id)
    wait_for(lambda: SLOW in drivers.now and len(ids(stack, SLOW)) >= before + 2 * ROWS, 240, every=0.2)
    return drivers.now[SLOW]


def rest_of(stack: Stack, client: AirflowClient, run_id: str) -> None:
    """Wait until a run has ended, and expect that it has written every row once."""
    landed = len(list((stack.volume("data") / "landing" / SLOW).iterdir())) * ROWS
    written = len(ids(stack, SLOW))
    print(f"killed when {written} of {landed} rows were written")
    assert written < landed
    wait_for(lambda: is_over(client, SLOW, run_id), 300, every=1)
    assert next(one.state for one in client.runs(SLOW) if one.run_id == run_id) == "success"
    assert ids(stack, SLOW) == list(range(landed))


def test_a_killed_worker_leaves_its_update_to_another(stack: Stack, client: AirflowClient):
    """The container is gone with its driver: Airflow tries the task again on the other worker, under the same request."""
    drivers = Drivers([SLOW], SLOTS)
    drivers.start()
    killed = container_of(stack, in_mid_update(stack, client, drivers, "killed"))
    killed.kill()
    rest_of(stack, client, "killed")
    drivers.ended.set()
    start_worker(stack, killed.name)
    assert drivers.most_of_one == 1, drivers.together
    *before, last = updates_of(stack, SLOW, "killed")
    assert (last, "COMPLETED" in before) == ("COMPLETED", False)
    assert before, "the killed attempt has its record under the same request"
    stack.wait_healthy(killed.name)


def test_a_driver_does_not_outlive_what_watches_its_task(stack: Stack, client: AirflowClient):
    """Only the process that watches the task is killed: task and driver end by themselves, and the next attempt meets no orphan."""
    drivers = Drivers([SLOW], SLOTS)
    drivers.start()
    driver = in_mid_update(stack, client, drivers, "orphan")
    task = driver.parent()
    while task.parent() is not None and not any("celery" in word.lower() for word in task.parent().cmdline()):
        task = task.parent()
    chain = [(one.pid, one.name(), one.cmdline()[:4]) for one in [driver, *driver.parents()]]
    print(chain)
    supervisor = driver.parent().parent()
    killed_at = time.monotonic()
    supervisor.kill()
    psutil.wait_procs([driver], timeout=120)
    print(
        f"the driver ended {time.monotonic() - killed_at:.1f} s after its supervisor: {not driver.is_running()}"
    )
    rest_of(stack, client, "orphan")
    print(f"the run ended after {time.monotonic() - killed_at:.1f} s")
    drivers.ended.set()
    print(drivers.together)
    print(updates_of(stack, SLOW, "orphan"))
    for log in sorted((stack.volume("airflow") / "logs").rglob("*orphan*/**/*update*/*.log")):
        print(log, log.read_text()[-6000:])
