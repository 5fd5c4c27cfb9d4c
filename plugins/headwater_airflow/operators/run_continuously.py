"""The task that keeps a continuous update running: a driver as long as the task, and a look at its health."""

from __future__ import annotations

from typing import Any

from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.driver.health import watched
from headwater_airflow.operators.run_update import RunUpdateOperator


class RunContinuouslyOperator(RunUpdateOperator):
    """Runs a continuous update until the task is stopped.

    The driver lives and ends with the task: a stop, a cleared task or a killed worker leaves nothing behind. A driver that dies,
    or of which no record comes for HEADWATER_SILENCE_SECONDS (600), makes the task fail, and Airflow's retry starts another.

    Decision 0174.
    """

    def _submit(self, context: Any, project: PipelineProject, request: str, *, last: bool) -> dict[str, Any]:
        with watched(project, request, self._end_silent):
            return super()._submit(context, project, request, last=last)

    def _end_silent(self) -> None:
        if self._driver is not None:
            self._driver.stop()
