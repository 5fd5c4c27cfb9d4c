"""Follows the updates of one pipeline: through Airflow while they run, in the event log once they are done."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headwater.errors import UpdateFailed
from headwater.event_log.reader import FlowResult, flow_results, updates
from headwater_demo.airflow_client import AirflowClient, DagRun
from headwater_demo.airflow_services import AirflowServices
from headwater_demo.steps import Step
from headwater_demo.task_log import readable_tail

_APPEAR_SECONDS = 120
_UPDATE_SECONDS = 900
_DUE_SECONDS = 3.0
_POLL_SECONDS = 1.0


@dataclass
class DagUpdates:
    """The updates that a pipeline's DAG makes.

    Attributes:
        airflow: where the DAG runs.
        dag_id: the DAG, named as the pipeline.
        state_folder: the pipeline's folder in storage, with its event log.

    """

    airflow: AirflowServices
    dag_id: str
    state_folder: Path
    _client: AirflowClient | None = None
    _known_runs: set[str] = field(default_factory=set)
    _known_requests: set[str] = field(default_factory=set)

    @property
    def client(self) -> AirflowClient:
        """The connection to Airflow, made on first use."""
        self._client = self._client or self.airflow.client()
        return self._client

    def begin(self) -> None:
        """Wait until Airflow knows the DAG, and clear what an interrupted run of the stack left unfinished."""
        self.client.wait_for_dag(self.dag_id, _APPEAR_SECONDS)
        self.client.pause(self.dag_id, paused=True)
        for run in self.client.runs(self.dag_id):
            if not run.is_finished:
                self.client.fail_run(self.dag_id, run.run_id)
        self._remember()

    def hold(self, seconds: float = _UPDATE_SECONDS) -> None:
        """Pause the DAG and return when nothing of it runs: data can arrive between two updates, or Airflow can be ended.

        Args:
            seconds: how long to wait for a run that is under way.

        Raises:
            UpdateFailed: if it takes longer.

        """
        deadline = time.monotonic() + seconds
        self.client.pause(self.dag_id, paused=True)
        while self._runs_now():
            # Airflow begins no task of a paused DAG: a run that is under way would never end.
            self.client.pause(self.dag_id, paused=False)
            while self._runs_now():
                self._pause_between_polls(deadline)
            self.client.pause(self.dag_id, paused=True)
        self._remember()

    def _runs_now(self) -> bool:
        # One that is queued counts: left behind under a paused DAG it would have to be marked as failed later.
        return any(not run.is_finished for run in self.client.runs(self.dag_id))

    def next_update(self, step: Step) -> list[FlowResult]:
        """Unpause the DAG, follow the next update to its end, and return what each flow did.

        The update is a run of the schedule if one is due, else one that is triggered.

        Raises:
            UpdateFailed: if a task failed, with the end of its log.

        """
        self.client.pause(self.dag_id, paused=False)
        if not self._is_due():
            self.client.trigger(self.dag_id, f"demo__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}")
        run = self._finished_run(step)
        if run.state != "success":
            raise self._failure(run)
        return self._new_results()

    def _is_due(self) -> bool:
        """Whether the scheduler makes a run by itself as soon as the DAG is unpaused."""
        deadline = time.monotonic() + _DUE_SECONDS
        while time.monotonic() < deadline:
            if self._new_runs():
                return True
            time.sleep(_POLL_SECONDS / 2)
        return False

    def _new_runs(self) -> list[DagRun]:
        return [run for run in self.client.runs(self.dag_id) if run.run_id not in self._known_runs]

    def _finished_run(self, step: Step) -> DagRun:
        deadline = time.monotonic() + _UPDATE_SECONDS
        while True:
            for run in reversed(self._new_runs()):
                if run.is_finished:
                    return run
                if run.state == "running":
                    step.say(self._task_summary(run))
                    break
            self._pause_between_polls(deadline)

    def _pause_between_polls(self, deadline: float) -> None:
        self.airflow.require_running()
        if time.monotonic() > deadline:
            raise UpdateFailed(
                "the update did not end in time",
                where=self.airflow.address,
                remedy=f"see the run of the DAG {self.dag_id} in Airflow, and its logs below {self.airflow.home}/logs",
            )
        time.sleep(_POLL_SECONDS)

    def _task_summary(self, run: DagRun) -> str:
        tasks = self.client.tasks(self.dag_id, run.run_id)
        done = sum(task.state == "success" for task in tasks)
        at_work = [task.task_id for task in tasks if task.state in {"running", "up_for_retry", "failed"}]
        return f"{done} of {len(tasks)} tasks done" + (f", at work: {', '.join(at_work)}" if at_work else "")

    def _failure(self, run: DagRun) -> UpdateFailed:
        failed = [task for task in self.client.tasks(self.dag_id, run.run_id) if task.state == "failed"]
        if not failed:
            return UpdateFailed(f"the run {run.run_id} failed", where=self.airflow.home / "logs")
        # The log of the task that submits has more than those of the tasks that follow it.
        worst = next((task for task in failed if task.task_id == "update"), failed[0])
        log = self.airflow.task_log(self.dag_id, run.run_id, worst.task_id, worst.attempt)
        names = ", ".join(task.task_id for task in failed)
        return UpdateFailed(
            f"tasks failed: {names}. The end of the log of {worst.task_id}:\n{readable_tail(log)}",
            where=log,
            remedy=f"all logs are below {self.airflow.home}/logs",
        )

    def _new_results(self) -> list[FlowResult]:
        """Return what the flows did, over all attempts of the requests that were not there before."""
        new = [
            update.request_id or update.update_id
            for update in updates(self.state_folder)
            if (update.request_id or update.update_id) not in self._known_requests
        ]
        return [
            result
            for request in dict.fromkeys(new)
            for result in flow_results(self.state_folder, request_id=request)
        ]

    def _remember(self) -> None:
        self._known_runs |= {run.run_id for run in self.client.runs(self.dag_id) if run.is_finished}
        self._known_requests |= {
            update.request_id or update.update_id for update in updates(self.state_folder)
        }
