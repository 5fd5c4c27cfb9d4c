"""The local stack as a whole: where its things lie, what its processes need to know, how it comes up."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headwater.errors import UsageError
from headwater.runtime.conditions import PortTaken
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.ports import free_port, is_free, require_free
from headwater_demo.airflow_services import AirflowServices
from headwater_demo.kafka_broker import PORT_SETTING as KAFKA_PORT_SETTING
from headwater_demo.kafka_broker import KafkaBroker
from headwater_demo.processes import ProcessTable
from headwater_demo.sample_delivery import TOPIC, Destination
from headwater_demo.steps import Steps

AIRFLOW_PORT_SETTING = "HEADWATER_AIRFLOW_PORT"
_AIRFLOW_PORT = 8080
_PARTITIONS = 2


@dataclass(frozen=True)
class LocalStack:
    """Kafka and Airflow over one folder; what is in the folder is kept from run to run.

    Attributes:
        checkout: the project's folder.
        folder: holds everything that the stack writes.
        processes: where the processes are registered to be ended.

    """

    checkout: Path
    folder: Path
    processes: ProcessTable

    @cached_property
    def broker(self) -> KafkaBroker:
        """The Kafka broker."""
        port = _chosen_port(KAFKA_PORT_SETTING, "the Kafka broker")
        return KafkaBroker(self.folder / "kafka", port, environment=self.processes.environment())

    @cached_property
    def airflow(self) -> AirflowServices:
        """Airflow's services."""
        port = _chosen_port(AIRFLOW_PORT_SETTING, "Airflow", _AIRFLOW_PORT)
        return AirflowServices(self.checkout, self.folder / "airflow", port, self.processes, self.variables)

    @cached_property
    def destination(self) -> Destination:
        """Where sample data is sent to."""
        return Destination(self.broker.bootstrap_servers, self.folder / "landing")

    @property
    def storage(self) -> Path:
        """The folder of checkpoints and event logs."""
        return self.folder / "storage"

    @cached_property
    def variables(self) -> dict[str, str]:
        """What Airflow and the updates that it submits find in their environment."""
        programs = Path(sys.executable).parent
        floors = [str(self.checkout / floor) for floor in ("include", "jobs", "plugins")]
        return {
            "HEADWATER_HOME": str(self.checkout),
            "HEADWATER_STORAGE": str(self.storage),
            "HEADWATER_WAREHOUSE": str(self.folder / "warehouse"),
            "HEADWATER_KAFKA": self.broker.bootstrap_servers,
            "HEADWATER_LANDING": str(self.folder / "landing"),
            "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join(floors),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **java_environment(),
        }

    def start(self, steps: Steps, first_data: Callable[[], str]) -> None:
        """Bring everything up, side by side; returns when the broker has the first data and Airflow is healthy.

        Args:
            steps: shows how far it is.
            first_data: sends the first data once the broker runs; returns what to say about it.

        """
        # Before anything is started: a taken port or a missing Java is reported at once.
        variables_for = self.airflow.variables
        assert variables_for
        pool = ThreadPoolExecutor(max_workers=3, thread_name_prefix="start")
        try:
            parts = [
                pool.submit(self._start_broker, steps, first_data),
                pool.submit(self._start_airflow, steps),
                pool.submit(_fetch_spark_jars, steps),
            ]
            for part in as_completed(parts):
                part.result()
        finally:
            # The rest is not waited for: its processes are about to be ended.
            pool.shutdown(wait=False, cancel_futures=True)

    def _start_broker(self, steps: Steps, first_data: Callable[[], str]) -> None:
        with steps.step("Kafka broker") as step:
            if not (self.folder / "kafka").exists():
                step.say("fetching its jars, unless they are in the cache")
            self.broker.start()
            self.broker.create_topic(TOPIC, _PARTITIONS)
            step.say(self.broker.bootstrap_servers)
        with steps.step("First data") as step:
            step.say(first_data())

    def _start_airflow(self, steps: Steps) -> None:
        with steps.step("Airflow") as step:
            step.say("preparing its database")
            self.airflow.migrate()
            step.say("starting its four services")
            self.airflow.start()
            self.airflow.wait_until_healthy()
            step.say(self.airflow.address)


@contextmanager
def local_stack(checkout: Path, folder: Path) -> Iterator[LocalStack]:
    """Give the stack of a folder, for one user at a time; on leaving, all its processes are ended.

    Raises:
        UsageError: if another process has the stack of this folder.

    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "a demo is running already", where=folder, remedy="end that one with Ctrl-C first"
            ) from error
        with ProcessTable(folder) as processes:
            # What an earlier run left behind if it was killed.
            processes.sweep()
            yield LocalStack(checkout, folder, processes)


def _fetch_spark_jars(steps: Steps) -> None:
    with steps.step("Spark's jars") as step:
        step.say(f"{len(ensure_jars('spark'))} jars")


def _chosen_port(setting: str, what: str, preferred: int = 0) -> int:
    chosen = os.environ.get(setting)
    if not chosen:
        return preferred if preferred and is_free(preferred) else free_port()
    try:
        return require_free(int(chosen), what, setting)
    except ValueError as error:
        raise PortTaken(
            f"{chosen!r} is not a port number", where=setting, remedy="give a number from 1024 to 65535"
        ) from error
