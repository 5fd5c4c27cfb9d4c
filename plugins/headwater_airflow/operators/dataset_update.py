"""The task of one table: green, red or skipped as the table's part in the update is.

Decision 0013.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException
from airflow.triggers.base import StartTriggerArgs

from headwater.errors import HeadwaterError
from headwater_airflow.assets import announce
from headwater_airflow.following.dataset_progress import DatasetProgress
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict
from headwater_airflow.following.request import request_id
from headwater_airflow.openlineage import task_lineage
from headwater_airflow.operators.announcement import event_details
from headwater_airflow.roots import pipeline_project
from headwater_airflow.triggers.dataset_update import DatasetUpdateTrigger, update_outcome

# ``DAG.test`` runs tasks one after the other and leaves this name: a task that waits there waits forever.
_ONE_AFTER_THE_OTHER = "dag_test"
# ``airflow tasks test`` sets it, and runs nothing else of the DAG.
_ALONE = "AIRFLOW_TEST_MODE"
# In the task's result: the updates that it has spoken for.
OF_UPDATES = "of_updates"
_NOTHING_TO_FOLLOW = (
    "The task of a table follows the task `update` of its run, and there is none under `airflow tasks test`. "
    "Test `update`, or the whole DAG: `airflow dags test`."
)


class DatasetUpdateOperator(BaseOperator):  # type: ignore[misc]
    """Follows one dataset of the pipeline that the task ``update`` of the same run refreshes.

    It starts in the triggerer, and needs a worker only to say that the table changed (an asset event with version,
    rows and update) or failed. Updates that find nothing new cost no worker at all.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: as the manifest names it.
        asset: the table, as an outlet; None for a sink.

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#d9ecef"
    start_from_trigger = True

    def __init__(self, *, pipeline: str, dataset: str, asset: Asset | None, **kwargs: Any) -> None:
        super().__init__(outlets=[asset] if asset is not None else [], **kwargs)
        self.pipeline = pipeline
        self.dataset = dataset
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{DatasetUpdateTrigger.__module__}.{DatasetUpdateTrigger.__qualname__}",
            trigger_kwargs={"pipeline": pipeline, "dataset": dataset},
            next_method="resume",
        )

    def execute(self, context: Any) -> dict[str, Any]:
        """End at once if the log has the outcome, else wait."""
        instance, run = context["ti"], context["dag_run"]
        outcome = update_outcome(instance.dag_id, instance.run_id)
        verdict = self._look(instance.dag_id, instance.run_id, run.start_date, outcome)
        if verdict is not None:
            return self._conclude(verdict, context)
        if run.triggering_user_name == _ONE_AFTER_THE_OTHER:
            time.sleep(0.5)
            raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=1))
        if os.environ.get(_ALONE) == "True":
            raise AirflowFailException(_NOTHING_TO_FOLLOW)
        since = run.start_date.isoformat() if run.start_date else None
        trigger = DatasetUpdateTrigger(
            self.pipeline, self.dataset, instance.dag_id, instance.run_id, since=since
        )
        self.defer(trigger=trigger, method_name="resume")
        raise AssertionError  # defer raises

    def resume(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        """Conclude with what the trigger found."""
        return self._conclude(Verdict.of_payload(event), context)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """What the table is made of, for Airflow's OpenLineage provider."""
        request = request_id(task_instance.dag_id, task_instance.run_id)
        return task_lineage(self.pipeline, [self.dataset], request)

    def _look(
        self, dag_id: str, run_id: str, since: datetime | None, outcome: UpdateOutcome
    ) -> Verdict | None:
        try:
            progress = DatasetProgress.open(self.pipeline, self.dataset, dag_id, run_id, since)
            verdict = progress.look(outcome)
            news = list(progress.news())
        except HeadwaterError as error:
            if not error.transient:
                raise AirflowFailException(str(error)) from error
            self.log.warning(str(error))
            return None
        for line in news:
            self.log.info(line)
        return verdict

    def _conclude(self, verdict: Verdict, context: Any) -> dict[str, Any]:
        if verdict.ending is Ending.FAILED:
            raise AirflowFailException(verdict.message)
        if verdict.ending is Ending.LEFT_OUT:
            raise AirflowSkipException(verdict.message)
        self.log.info(verdict.message)
        project = pipeline_project(self.pipeline)
        more = event_details(self, project, self.dataset, verdict.update_id)
        announce(self, context, (verdict, more))
        return {**verdict.asset_extra(), **more, OF_UPDATES: list(verdict.of_updates)}
