"""A driver that YARN starts on a machine of its own: code and pipeline are sent to it.

Decision 0187.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.graph.pipeline_project import PipelineProject
from headwater.runtime.masters import DRIVER_PYTHON
from headwater.runtime.submit import LOG_SETTINGS
from headwater_airflow.driver.elsewhere import Shipment, wait_for_running
from headwater_airflow.driver.shipping import CODE, code_archive, pipeline_archive
from headwater_airflow.roots import home_folder

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class Yarn:
    """Resource managers of YARN. A driver that runs is known by the event log and the lease."""

    exit_code: int | None = None

    def shipment(self, project: PipelineProject, conf: Mapping[str, str], application: str) -> Shipment:
        """Pack Headwater and the pipeline, and make the settings those of another machine."""
        return shipment(project, conf, application)

    def follow(self, project: PipelineProject, request: str, log: Any) -> bool:
        """Wait for a driver of this request whose update has begun; whether there was one."""
        return wait_for_running(project, request, log) is not None


def shipment(project: PipelineProject, conf: Mapping[str, str], application: str) -> Shipment:
    """Pack Headwater and the pipeline, and make the settings those of another machine.

    Args:
        project: as it lies beside the task.
        conf: the settings of a driver beside the task.
        application: the script on this machine, which spark-submit sends.
    """
    folder = project.folder.name
    options = conf.get(_JAVA_OPTIONS, "").replace(LOG_SETTINGS.as_uri(), LOG_SETTINGS.name)
    path = f"{CODE}/include:{CODE}/jobs"
    there = {name: value for name, value in conf.items() if name != DRIVER_PYTHON}
    there |= {
        _JAVA_OPTIONS: options,
        "spark.yarn.appMasterEnv.PYTHONPATH": path,
        # A second attempt by YARN would only wait for the lease; tasks are tried again by Airflow.
        "spark.yarn.maxAppAttempts": "1",
    }
    archives = f"{code_archive(home_folder())}#{CODE},{pipeline_archive(project.folder)}#{folder}"
    return Shipment(there, folder, application, archives, str(LOG_SETTINGS))
