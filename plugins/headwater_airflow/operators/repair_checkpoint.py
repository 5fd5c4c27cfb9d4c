"""The tasks of a repair: one that shows the plan and its cost, one that carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.doctor.flow_cases import named_case
from headwater.doctor.repairs import plan_repair
from headwater.doctor.surgery import operate
from headwater.errors import HeadwaterError
from headwater_airflow.forms.parameter_form import refuse_unknown_conf
from headwater_airflow.forms.repair_form import read_repair, repair_params
from headwater_airflow.roots import pipeline_project


class RepairCheckpointOperator(BaseOperator):  # type: ignore[misc]  # Airflow's types are not followed
    """Repairs the checkpoint of one flow as the run's form says, or only shows what that would do. No JVM is started.

    Args:
        pipeline: the name of the pipeline's folder.
        only_plan: change nothing.

    """

    template_fields: Sequence[str] = ()
    ui_color: ClassVar[str] = "#f6dcdc"

    def __init__(self, *, pipeline: str, only_plan: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.only_plan = only_plan

    def execute(self, context: Any) -> dict[str, Any]:
        """Plan, log the plan, and carry it out unless it is a dry run."""
        params = context["params"]
        if params.get("dry_run", True) is not False and not self.only_plan:
            raise AirflowSkipException("A dry run: the plan is in the log of the task before.")
        try:
            refuse_unknown_conf(self, context, repair_params(()))
            form = read_repair(params)
            case = named_case(pipeline_project(self.pipeline), form.flow)
            plan = plan_repair(case, form.action, form.options)
            self.log.info("%s", plan)
            if self.only_plan:
                return {"state": "PLANNED", "plan": plan.as_dict()}
            surgery = operate(case, plan)
        except HeadwaterError as error:
            raise (AirflowException if error.transient else AirflowFailException)(str(error)) from error
        if surgery.snapshot is not None:
            self.log.info("A copy of what was there before: %s", surgery.snapshot.name)
        self.log.info("Done: %s.", surgery.done)
        return {"state": "COMPLETED", "repair": surgery.as_dict()}
