"""The tasks of maintenance: one that shows what is due, one that does it, with Spark only for tables that need it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from pydantic import TypeAdapter, ValidationError

from headwater.contract.maintenance_report import JOB, plan_lines
from headwater.definitions.spec_model import Duration
from headwater.definitions.trigger import ProcessingTime
from headwater.errors import HeadwaterError, UsageError
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.maintenance.chore import MaintenanceOptions
from headwater.maintenance.maintain import Outcome, check_outcomes, maintain
from headwater.maintenance.maintenance_plan import MaintenancePlan, chores, look
from headwater_airflow.driver import submission
from headwater_airflow.driver.process import Driver, end_with_supervisor
from headwater_airflow.driver.verdict import judge
from headwater_airflow.forms.parameter_form import refuse_unknown_conf
from headwater_airflow.forms.selection import maintenance_params, read_selection
from headwater_airflow.operators.run_update import RunUpdateOperator
from headwater_airflow.roots import home_folder, pipeline_project

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)
# An update that is about to end, and the gap between two runs of a long stream.
_ROOM = timedelta(minutes=10)


class RunMaintenanceOperator(RunUpdateOperator):
    """Does what is due in a pipeline's tables and storage, or only says what that is.

    Compaction, vacuum and checkpoints are done by the task itself; a driver is submitted where a table has features
    that only Spark writes, or is too large. It waits for an update that runs, between any two of its steps.

    Args:
        pipeline: the name of the pipeline's folder.
        only_plan: change nothing.

    """

    ui_color: ClassVar[str] = "#e6efe0"
    runs_updates: ClassVar[bool] = False

    def __init__(self, *, pipeline: str, only_plan: bool = False, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.only_plan = only_plan

    def execute(self, context: Any) -> dict[str, Any]:
        """Plan, log what is due, and do it unless only the plan is requested."""
        params = context["params"]
        try:
            refuse_unknown_conf(self, context, maintenance_params(()))
            if params.get("dry_run") and not self.only_plan:
                raise AirflowSkipException("A dry run: the plan is in the log of the task before.")
            project = pipeline_project(self.pipeline)
            return self._maintain(context, project, maintenance_options(params))
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ARG002 - a hook of Airflow
        """Nothing: no rows are made."""
        return None

    def _maintain(
        self, context: Any, project: PipelineProject, options: MaintenanceOptions
    ) -> dict[str, Any]:
        due = chores(project, stored_manifest(project), options)
        plan = look(due)
        for line in plan_lines(project.pipeline_id, plan):
            self.log.info("%s", line)
        if self.only_plan:
            return {"state": "PLANNED", "plan": plan.as_dict()}
        outcomes = maintain(project, due, wait=patience(project), tell=self._tell) if plan.is_due else []
        steps = [outcome.as_dict() for outcome in outcomes]
        if plan.for_spark:
            steps += self._by_spark(context, project, plan, options)
        check_outcomes(outcomes)
        return {"state": "COMPLETED", "steps": steps}

    def _tell(self, outcome: Outcome) -> None:
        self.log.info("%s: %s of %s: %s", outcome.ending, outcome.kind, outcome.subject, outcome.message)

    def _by_spark(
        self, context: Any, project: PipelineProject, plan: MaintenancePlan, options: MaintenanceOptions
    ) -> list[dict[str, Any]]:
        target = self._target()
        self.application = submission.application(JOB)
        tables = [f"--tables={','.join(options.tables)}"] if options.tables else []
        self.application_args = [
            str(project.folder),
            f"--storage={project.storage}",
            f"--warehouse={project.warehouse}",
            "--only=optimize",
            *tables,
            f"--wait={patience(project).total_seconds():g} seconds",
            "--yes",
            "--json",
        ]
        self._configure(project, target)
        self.log.info("%d tables need Spark: %s", len(plan.for_spark), [s.subject for s in plan.for_spark])
        report = self._drive(context)
        return list(report.get("steps") or [])

    def _drive(self, context: Any) -> Mapping[str, Any]:
        self._hook = self._get_hook()
        self._driver = driver = Driver(self._hook, home_folder(), self._variables)
        if self._killed:
            driver.stop()
        end_with_supervisor()
        try:
            super(RunUpdateOperator, self).execute(context)
        except AirflowException as error:
            driver.wait_for_last_words()
            failure = judge(driver.exit_code, driver.report.content, [])
            kind = AirflowException if failure.transient else AirflowFailException
            raise kind(failure.message) from error
        finally:
            driver.stop()
        if driver.exit_code is None:
            raise AirflowException("The task was stopped before its driver was started.")
        return driver.report.content or {}


def maintenance_options(params: Mapping[str, Any]) -> MaintenanceOptions:
    """The options that a run was given; anybody may post anything, so they are checked again.

    Raises:
        InvalidName, UsageError: if a value is not a list of names, or no span of time.

    """
    return MaintenanceOptions(
        tables=read_selection({"tables": params.get("tables")}).tables,
        retention=_span("retention", params.get("retention")),
        keep=_span("keep", params.get("keep")),
    )


def patience(project: PipelineProject) -> timedelta:
    """How long maintenance waits for an update before it is left for the next run: a long stream ends at its bound."""
    trigger = project.spec.trigger
    return _ROOM + (trigger.run_for if isinstance(trigger, ProcessingTime) else timedelta(0))


def _span(key: str, value: Any) -> timedelta | None:
    if value in (None, ""):
        return None
    try:
        return _DURATION.validate_python(value)
    except (ValidationError, OverflowError):
        raise UsageError(
            f"{value!r} is not a span of time.", where=key, remedy="Write it as `7 days` or `12 hours`."
        ) from None
