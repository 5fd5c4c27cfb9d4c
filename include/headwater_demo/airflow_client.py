"""The few calls of Airflow's REST interface that the local stack makes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from headwater.errors import HeadwaterError

_FINISHED = frozenset({"success", "failed"})


class AirflowRefused(HeadwaterError):
    """Airflow answered a request with an error."""

    condition = "AIRFLOW_REFUSED"


@dataclass(frozen=True)
class DagRun:
    """One run of a DAG."""

    run_id: str
    state: str

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in _FINISHED


@dataclass(frozen=True)
class TaskState:
    """How far a task of a run is; ``seconds`` is None before it started."""

    task_id: str
    state: str
    attempt: int
    seconds: float | None


@dataclass
class AirflowClient:
    """A client of one Airflow; it requests a token when it needs one."""

    address: str
    user: str
    password: str = field(repr=False)
    _http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30), repr=False)

    def wait_for_dag(self, dag_id: str, seconds: float) -> None:
        """Return when Airflow knows the DAG.

        Raises:
            AirflowRefused: if it does not within ``seconds``; shows the import errors.

        """
        deadline = time.monotonic() + seconds
        while self._request("GET", f"/dags/{dag_id}", allow_missing=True) is None:
            if time.monotonic() > deadline:
                raise AirflowRefused(
                    f"the DAG {dag_id} did not appear within {seconds:.0f} seconds",
                    where=self.address,
                    remedy="\n".join(self.import_errors()) or "see the log of the dag-processor",
                )
            time.sleep(1)

    def import_errors(self) -> list[str]:
        """Return what kept DAG files from loading: file and error, one string each."""
        answer = self._request("GET", "/importErrors") or {}
        return [f"{entry['filename']}: {entry['stack_trace']}" for entry in answer.get("import_errors", [])]

    def pause(self, dag_id: str, *, paused: bool) -> None:
        """Pause or unpause a DAG."""
        self._request("PATCH", f"/dags/{dag_id}", json={"is_paused": paused})

    def trigger(self, dag_id: str, run_id: str, **form: Any) -> None:
        """Start a run of a DAG now; ``form``: its parameters."""
        body = {"dag_run_id": run_id, "logical_date": None, "conf": form}
        self._request("POST", f"/dags/{dag_id}/dagRuns", json=body)

    def backfill(self, dag_id: str, first: str, last: str, **form: Any) -> None:
        """Have Airflow make a run of a DAG for each of its intervals from one date to another, both in ISO form."""
        body = {
            "dag_id": dag_id,
            "from_date": first,
            "to_date": last,
            "dag_run_conf": form,
            "max_active_runs": 2,
        }
        self._request("POST", "/backfills", json={**body, "reprocess_behavior": "none"})

    def runs(self, dag_id: str) -> list[DagRun]:
        """Return the latest runs of a DAG, the newest first."""
        answer = (
            self._request("GET", f"/dags/{dag_id}/dagRuns", params={"order_by": "-run_after", "limit": 50})
            or {}
        )
        return [DagRun(run["dag_run_id"], run["state"]) for run in answer["dag_runs"]]

    def fail_run(self, dag_id: str, run_id: str) -> None:
        """Mark a run as failed, so that its tasks are ended."""
        self._request("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", json={"state": "failed"})

    def clear_run(self, dag_id: str, run_id: str) -> None:
        """Have all tasks of a run run again, as Clear does in Airflow's pages."""
        self._request(
            "POST", f"/dags/{dag_id}/dagRuns/{run_id}/clear", json={"dry_run": False, "only_failed": False}
        )

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """Return the state of each task of a run."""
        answer = (
            self._request("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", params={"limit": 100})
            or {}
        )
        return [
            TaskState(task["task_id"], task["state"] or "waiting", task["try_number"], task["duration"])
            for task in answer["task_instances"]
        ]

    def _request(
        self, method: str, path: str, *, allow_missing: bool = False, **options: Any
    ) -> dict[str, Any] | None:
        answer = self._http.request(method, f"{self.address}/api/v2{path}", **options)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._log_in()
            answer = self._http.request(method, f"{self.address}/api/v2{path}", **options)
        if answer.status_code == httpx.codes.NOT_FOUND and allow_missing:
            return None
        if answer.is_error:
            raise AirflowRefused(
                f"Airflow answered {answer.status_code} to {method} {path}: {answer.text[:300]}",
                where=self.address,
            )
        content: dict[str, Any] = answer.json()
        return content

    def _log_in(self) -> None:
        answer = self._http.post(
            f"{self.address}/auth/token", json={"username": self.user, "password": self.password}
        )
        if answer.is_error:
            raise AirflowRefused(f"Airflow does not accept the login of {self.user}", where=self.address)
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
