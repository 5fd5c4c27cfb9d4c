"""The task that fills a range of tables: ``spark-submit`` of ``jobs/run_backfill.py``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.contract.backfill_report import lines_of
from headwater.errors import HeadwaterError
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.driver import submission
from headwater_airflow.driver.secret_parameters import DriverParameters, driver_parameters
from headwater_airflow.following.backfill_record import cleared_backfill
from headwater_airflow.forms.backfill_form import BackfillRequest, backfill_params, read_backfill
from headwater_airflow.forms.parameter_form import read_object, refuse_unknown_conf
from headwater_airflow.operators.announcement import announce_backfill
from headwater_airflow.operators.run_update import RunUpdateOperator
from headwater_airflow.roots import pipeline_project

# The kinds of runs that are made for their interval. One that somebody triggered has one, too: the last that is over.
_OF_INTERVALS = ("backfill", "scheduled")


class BackfillOperator(RunUpdateOperator):
    """Fills a range of tables, as the run's form says, and returns the report.

    Runs of Airflow's own backfill that name no range take their data interval. Runs that the schedule makes are skipped: it
    is there to cut time into intervals. A retry finds what an earlier try has committed, and writes nothing twice; a run that was
    done and is cleared is done again. Each table that was filled has an asset event.

    Args:
        pipeline: the name of the pipeline's folder.
        scheduled: fill the intervals of scheduled runs, too.
        announces: the tables whose assets are the task's outlets, in their order.

    """

    ui_color: ClassVar[str] = "#d9e8fb"
    # A killed backfill leaves no update to close in the event log.
    runs_updates: ClassVar[bool] = False

    def __init__(self, *, pipeline: str, scheduled: bool = False, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.scheduled = scheduled

    def execute(self, context: Any) -> dict[str, Any]:
        """Fill the range; the report has the result for each table."""
        instance = context["ti"]
        kind = _run_type(context)
        if kind == "scheduled" and not self.scheduled:
            raise AirflowSkipException(
                "The schedule only cuts time into intervals: trigger a run, or have Airflow backfill some dates."
            )
        attempts = (instance.max_tries or 0) + 1
        try:
            parameters = self._parameters(context)
            project = pipeline_project(self.pipeline, parameters.environment, parameters=parameters.values)
            project.check_parameters()
            # Nobody fills in the form of a scheduled run: there it is the DAG that says what is to be done.
            params = {**context["params"], "dry_run": False} if kind == "scheduled" else context["params"]
            backfill = read_backfill(params, _interval(context) if kind in _OF_INTERVALS else None)
            backfill, request = cleared_backfill(
                project, backfill, instance.dag_id, instance.run_id, self._first_attempt_of(instance)
            )
            self._prepare_backfill(project, backfill, request, parameters.variables)
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        self.log.info("Backfill of %s: %s", ", ".join(backfill.tables), backfill.chosen or "all history")
        report = self._submit(context, project, request, last=instance.try_number >= attempts)
        for line in lines_of(report):
            self.log.info(line)
        tables = zip(self.announces, self.outlets, strict=False)
        retried = instance.try_number > self._first_attempt_of(instance)
        announce_backfill(self, context, project, tables, report, retried=retried)
        return report

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Nothing: the lineage of a table is that of its updates."""

    def _first_attempt_of(self, instance: Any) -> int:
        """The first attempt since the task was cleared last: a clear allows for as many retries again, from there on."""
        first = (instance.max_tries or 0) - (self.retries or 0) + 1
        return first if 1 <= first <= instance.try_number else 1

    def _parameters(self, context: Any) -> DriverParameters:
        refuse_unknown_conf(self, context, {*backfill_params((), (), None), "parameters"})
        declared = pipeline_project(self.pipeline).spec.parameters
        return driver_parameters(declared, read_object(context["params"], "parameters"))

    def _prepare_backfill(
        self, project: PipelineProject, backfill: BackfillRequest, request: str, secrets: Mapping[str, str]
    ) -> None:
        target = self._target()
        self.application = submission.application(submission.BACKFILL)
        roots = [f"--storage={project.storage}", f"--warehouse={project.warehouse}"]
        self.application_args = [
            str(project.folder),
            *roots,
            f"--request-id={request}",
            *submission.parameter_arguments(project),
            "--json",
            *backfill.arguments(),
        ]
        self._configure(project, target, secrets)


def _run_type(context: Mapping[str, Any]) -> str:
    run_type = getattr(context.get("dag_run"), "run_type", "manual")
    return str(getattr(run_type, "value", run_type))


def _interval(context: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    return (start, end) if start is not None and end is not None and start < end else None
