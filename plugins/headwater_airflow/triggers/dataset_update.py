"""Follows a dataset's part in a running update."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from headwater_airflow.entities import UPDATE_TASK_ID
from headwater_airflow.following.dataset_progress import DatasetProgress
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict
from headwater_airflow.following.update_watch import log_version
from headwater_airflow.triggers.patience import patiently
from headwater_airflow.triggers.update_poll import shared_poll


class DatasetUpdateTrigger(BaseTrigger):  # type: ignore[misc]
    """Ends when the dataset is done under the request of its DAG run, or when the update is over.

    A table that did not change, or was left out, ends the task here and now: no worker is started, and no asset
    event is made. What changed or failed goes back to the operator.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: as the manifest names it.
        dag_id, run_id: of the run; taken from the task instance where they are not given.
        since: when the run began or was cleared last, in ISO format; likewise.
        poll_seconds: between two looks at the event log.

    """

    def __init__(
        self,
        pipeline: str,
        dataset: str,
        dag_id: str | None = None,
        run_id: str | None = None,
        since: str | None = None,
        poll_seconds: float = 2.0,
    ) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.dataset = dataset
        self.dag_id = dag_id
        self.run_id = run_id
        self.since = since
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The trigger as its class and arguments."""
        names = ("pipeline", "dataset", "dag_id", "run_id", "since", "poll_seconds")
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            name: getattr(self, name) for name in names
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at the log until the dataset's end is known."""
        dag_id, run_id = self._run()
        since = self._since()
        progress = await patiently(
            lambda: DatasetProgress.open(self.pipeline, self.dataset, dag_id, run_id, since),
            self.poll_seconds,
        )
        state_folder = progress.project.state_folder
        verdict: Verdict | None = None
        async with shared_poll(
            (state_folder, dag_id, run_id),
            lambda: update_outcome(dag_id, run_id),
            lambda: log_version(state_folder),
            self.poll_seconds,
        ) as poll:
            async for outcome in poll.outcomes():
                verdict, news = await patiently(partial(_look, progress, outcome), self.poll_seconds)
                for line in news:
                    self.log.info(line)
                if verdict is not None:
                    break
        assert verdict is not None, "outcomes never end"
        self.log.info(verdict.message)
        yield _event(verdict)

    def _run(self) -> tuple[str, str]:
        if self.dag_id and self.run_id:
            return self.dag_id, self.run_id
        instance = self.task_instance
        assert instance is not None, "the triggerer sets which task a trigger belongs to"
        return instance.dag_id, instance.run_id

    def _since(self) -> datetime | None:
        if self.since:
            return datetime.fromisoformat(self.since)
        # Only a task that started in the triggerer comes with a context.
        context = getattr(self.task_instance, "get_template_context", None)
        begun: datetime | None = context()["dag_run"].start_date if context else None
        return begun


def update_outcome(dag_id: str, run_id: str) -> UpdateOutcome:
    """How far the update of a run is, by its task's state."""
    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[UPDATE_TASK_ID], run_ids=[run_id])
    state = states.get(run_id, {}).get(UPDATE_TASK_ID)
    return UpdateOutcome.of_task_state(str(getattr(state, "value", state)) if state else None)


def tasks_that_are_over(dag_id: str, run_id: str, task_ids: list[str]) -> set[str]:
    """Those tasks of a run that have ended, however."""
    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=task_ids, run_ids=[run_id])
    ended = {"success", "failed", "skipped", "upstream_failed", "removed"}
    return {
        task_id
        for task_id, state in states.get(run_id, {}).items()
        if state and str(getattr(state, "value", state)) in ended
    }


def _look(progress: DatasetProgress, outcome: UpdateOutcome) -> tuple[Verdict | None, list[str]]:
    return progress.look(outcome), list(progress.news())


def _event(verdict: Verdict) -> TriggerEvent:
    if verdict.ending is Ending.UNCHANGED:
        return TaskSuccessEvent()
    if verdict.ending is Ending.LEFT_OUT:
        return TaskSkippedEvent()
    return TriggerEvent(verdict.payload())
