"""docker-compose.yaml with docker-compose.celery.yaml over it, without containers: two workers with names and queues of their own.

Workers are given what the file gives them: they run updates without a database or a key of Airflow's (decision 0227).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.team.containers import CELERY_FILE, COMPOSE_FILE, Stack
from tests.team.landed_pipelines import write_pipelines
from tests.team.postgres import postgres

# The first goes file by file; the second is for a worker that takes it from a queue of its own.
PIPELINES = ("north", "heavy", "south")
QUEUES = {"heavy": "heavy"}
WORKERS = {"airflow-worker-1": "default", "airflow-worker-2": "default,heavy"}
SLOTS = 2
# All that the test adds to the files. Airflow's own waits are minutes; drivers run in the workers, so that a lost one takes its driver with it.
ADDED = {
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
}


def start_worker(stack: Stack, name: str) -> None:
    """Start a worker, by Compose's own variable for its queues."""
    stack.start("airflow-worker", name, HEADWATER_QUEUES=WORKERS[name])


@contextmanager
def celery_stack(folder: Path) -> Iterator[Stack]:
    """The services that updates need: all but Kafka, its sample data and the standalone cluster, which `make test-team` runs."""
    running = Stack(folder, (COMPOSE_FILE, CELERY_FILE), **ADDED)
    write_pipelines(running, {name: f"queue: {QUEUES.get(name, 'default')}" for name in PIPELINES})
    secret, database = running.secret("postgres_password"), running.services["postgres"]
    try:
        with postgres(database, secret, running.addresses["postgres"]):
            started = time.monotonic()
            running.start("redis")
            running.run_to_end("airflow-init")
            running.wait_healthy("redis")
            for service in ("api-server", "dag-processor", "triggerer", "scheduler"):
                running.start(f"airflow-{service}")
            for name in WORKERS:
                start_worker(running, name)
            _write_manifest(running, PIPELINES[0])
            running.wait_healthy(
                *(name for name in running.containers if name not in ("redis", "airflow-init"))
            )
            print(f"all services are healthy after {time.monotonic() - started:.0f} s")
            yield running
            for name, container in running.containers.items():
                print(f"--- {name}\n{container.log.read_text(errors='replace')[-600:]}")
            running.end()
    finally:
        running.end()


def _write_manifest(stack: Stack, name: str) -> None:
    """Have a pipeline a task per table; pipelines are read-only in containers, so a copy is validated."""
    copy = f"/data/copies/{name}"
    commands = (
        f"mkdir -p /data/copies && cp -r jobs/pipelines/{name} {copy} && python -m headwater validate {copy}"
    )
    answer = stack.containers["airflow-worker-1"].run("sh", "-c", commands, seconds=120)
    assert answer.returncode == 0, answer.stderr
    made = stack.volume("data") / "copies" / name / "manifest.json"
    (stack.folder / "pipelines" / name / "manifest.json").write_bytes(made.read_bytes())
