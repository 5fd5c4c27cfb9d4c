"""Airflow's four services on this machine: loopback only, SQLite, a home of their own."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from headwater.errors import HeadwaterError
from headwater.runtime.ports import LOOPBACK
from headwater_demo.airflow_client import AirflowClient
from headwater_demo.processes import Child, ProcessTable

USER = "admin"
_START_SECONDS = 180
_PARTS = ("scheduler", "dag_processor", "triggerer")

# The scheduler and the triggerer would serve their logs on every network address; the web server
# reads the log files itself, as they lie on the same machine.
SERVICES: dict[str, tuple[str, ...]] = {
    "api-server": ("airflow", "api-server"),
    "scheduler": ("airflow", "scheduler", "--skip-serve-logs"),
    "dag-processor": ("airflow", "dag-processor"),
    "triggerer": ("airflow", "triggerer", "--skip-serve-logs"),
}


class AirflowFailed(HeadwaterError):
    """Airflow did not start, or one of its services stopped by itself."""

    condition = "AIRFLOW_FAILED"


@dataclass(frozen=True)
class AirflowServices:
    """Airflow as the local stack runs it.

    Attributes:
        checkout: the project's folder, with ``dags`` and ``plugins``.
        home: AIRFLOW_HOME; kept between runs.
        port: of the web server.
        processes: where the services are registered to be ended.
        variables: environment of the services beside their own settings.

    """

    checkout: Path
    home: Path
    port: int
    processes: ProcessTable
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the web interface is."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def password(self) -> str:
        """The password of the user ``admin``; made on first use, readable by the owner only."""
        if not self.password_file.exists():
            self._make_home()
            # Written before Airflow looks for it: it would make a file that all users can read, and log the password.
            handle = os.open(self.password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump({USER: secrets.token_urlsafe(12)}, file)
        return str(json.loads(self.password_file.read_text())[USER])

    def client(self) -> AirflowClient:
        """Return a client that is logged in once it makes its first request."""
        return AirflowClient(self.address, USER, self.password)

    def log(self, service: str) -> Path:
        """Return the file that holds what a service wrote."""
        return self.home / "service_logs" / f"{service}.log"

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int) -> Path:
        """Return the file that holds the log of one attempt of a task."""
        run = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"
        return run / f"task_id={task_id}" / f"attempt={attempt}.log"

    def migrate(self) -> None:
        """Make or renew the database.

        Raises:
            AirflowFailed: if that did not work.

        """
        self._make_home()
        migration = self._start("db-migrate", ("airflow", "db", "migrate"))
        if migration.process.wait() != 0:
            raise AirflowFailed(
                f"Airflow's database could not be prepared: {migration.log_tail(3)}", where=migration.log
            )
        self.processes.children.remove(migration)

    def start(self) -> None:
        """Start the four services; :meth:`wait_until_healthy` waits until they work."""
        assert self.password
        for name, command in SERVICES.items():
            self._start(name, command)

    def wait_until_healthy(self) -> None:
        """Return when all services report that they are at work.

        Raises:
            AirflowFailed: if one stopped, or they need more than three minutes.

        """
        deadline = time.monotonic() + _START_SECONDS
        while (missing := self._not_healthy()) and time.monotonic() < deadline:
            self.require_running()
            time.sleep(0.5)
        if missing:
            raise AirflowFailed(
                f"Airflow did not get ready within {_START_SECONDS} seconds: {', '.join(missing)}",
                where=self.log(missing[0].replace("_", "-")),
                remedy="see the end of that log; on a machine this busy, try again",
            )

    def require_running(self) -> None:
        """Raise AirflowFailed if a service has stopped by itself."""
        for child in self.processes.dead():
            if child.name in SERVICES:
                raise AirflowFailed(
                    f"Airflow's {child.name} stopped by itself:\n{child.log_tail()}", where=child.log
                )

    def environment(self) -> dict[str, str]:
        """Return what the services need in their environment."""
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.checkout / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.checkout / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "8",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.password_file),
            "AIRFLOW__API__HOST": LOOPBACK,
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.address,
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
            ),
        }
        return {**own, **self.variables}

    def _start(self, name: str, command: tuple[str, ...]) -> Child:
        program, *arguments = command
        # Airflow stands beside the Python that runs this, also where its folder is not on PATH.
        binary = Path(sys.executable).with_name(program)
        return self.processes.start(
            name, [binary, *arguments], self.log(name), env=self.environment(), cwd=self.home
        )

    def _not_healthy(self) -> list[str]:
        try:
            report = httpx.get(f"{self.address}/api/v2/monitor/health", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return ["api-server"]
        return [part for part in _PARTS if (report.get(part) or {}).get("status") != "healthy"]

    @property
    def password_file(self) -> Path:
        """The file that holds the password."""
        return self.home / "passwords.json"

    def _make_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
