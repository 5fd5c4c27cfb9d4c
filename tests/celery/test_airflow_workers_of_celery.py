"""docker-compose.celery.yaml without containers: drivers on two workers, as many as the pool has slots, and workers that are killed.

``make test-celery``; needs root (namespaces, Postgres' own user), Postgres and Redis.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from tests.celery.stack import PIPELINES, SLOTS, celery_stack, start_worker
from tests.dags.live_airflow import wait_for
from tests.team.containers import Stack, container_of
from tests.team.drivers import Drivers
from tests.team.landed_pipelines import FILES, ROWS, land
from tests.team.written import ids, updates_of

from headwater_demo.airflow_client import AirflowClient

pytestmark = pytest.mark.timeout(900)
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


def wait_for_rows(stack: Stack, drivers: Drivers, rows: int) -> psutil.Process:
    """The driver of the slow pipeline, when that has written some rows and not all."""
    wait_for(lambda: SLOW in drivers.now and len(ids(stack, SLOW)) >= rows, 300, every=0.2)
    return drivers.now[SLOW]


def test_a_killed_worker_leaves_its_updates_to_others(stack: Stack, client: AirflowClient):
    """Three updates, two slots, one queue of one worker only; a worker is killed with its driver: two drivers at most, one of a pipeline, each row once."""
    drivers = Drivers(PIPELINES, SLOTS)
    drivers.start()
    ran_in: dict[str, set[str]] = {}
    for name in PIPELINES:
        client.trigger(name, "first")

    def note_where() -> None:
        for name, process in list(drivers.now.items()):
            # It may end in between.
            with suppress(psutil.Error, ValueError):
                ran_in.setdefault(name, set()).add(container_of(stack, process).name)

    # One may have ended before the slow one has written anything.
    def slow_one_has_written() -> bool:
        note_where()
        return SLOW in drivers.now and len(ids(stack, SLOW)) >= 2 * ROWS

    wait_for(slow_one_has_written, 300, every=0.3)
    killed = container_of(stack, drivers.now[SLOW])
    killed.kill()
    written = len(ids(stack, SLOW))
    # As the file says: `restart: unless-stopped`.
    start_worker(stack, killed.name)

    def all_are_over() -> bool:
        note_where()
        return all(is_over(client, name, "first") for name in PIPELINES)

    wait_for(all_are_over, 600, every=2)
    drivers.ended.set()
    assert written < FILES * ROWS
    assert {name: ids(stack, name) for name in PIPELINES} == {
        name: list(range(FILES * ROWS)) for name in PIPELINES
    }
    assert (drivers.most_of_one, drivers.most_of_all) == (1, SLOTS), drivers.together
    assert set(ran_in) == set(PIPELINES)
    assert set().union(*ran_in.values()) <= {"airflow-worker-1", "airflow-worker-2"}
    assert ran_in["heavy"] == {"airflow-worker-2"}
    attempts = {name: updates_of(stack, name, "first") for name in PIPELINES}
    assert [(states[-1], states.count("COMPLETED")) for states in attempts.values()] == [("COMPLETED", 1)] * 3
    assert len(attempts[SLOW]) == 2, "the killed attempt has its record under the same request"
    tasks = {task.task_id: task.state for task in client.tasks(SLOW, "first")}
    assert {"update": "success", SLOW: "success"}.items() <= tasks.items()


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended; its parent may not have asked how."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_driver_does_not_outlive_what_watches_its_task(stack: Stack, client: AirflowClient):
    """Only the process that watches the task is killed: task and driver end at once, and the next attempt meets no other (decision 0228)."""
    drivers = Drivers([SLOW], SLOTS)
    drivers.start()
    land(stack, SLOW, FILES)
    client.trigger(SLOW, "unwatched")
    driver = wait_for_rows(stack, drivers, (FILES + 2) * ROWS)
    task = driver.parent()
    assert task is not None
    supervisor = task.parent()
    assert supervisor is not None
    supervisor.kill()
    killed_at = time.monotonic()
    wait_for(lambda: is_gone(task) and is_gone(driver), 25)
    print(f"task and driver ended {time.monotonic() - killed_at:.1f} s after what watched them")
    written = len(ids(stack, SLOW))
    wait_for(lambda: is_over(client, SLOW, "unwatched"), 300, every=2)
    drivers.ended.set()
    assert written < 2 * FILES * ROWS
    assert ids(stack, SLOW) == list(range(2 * FILES * ROWS))
    assert drivers.most_of_one == 1, drivers.together
    attempts = updates_of(stack, SLOW, "unwatched")
    assert (len(attempts), attempts[-1], attempts.count("COMPLETED")) == (2, "COMPLETED", 1)
