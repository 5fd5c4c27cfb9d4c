"""How the driver of an update is started by ``spark-submit``: settings, environment, arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from headwater.definitions.trigger import AvailableNow
from headwater.graph.pipeline_project import PipelineProject
from headwater.runtime.java import java_environment
from headwater.runtime.submit import command_line_conf, submit_conf
from headwater.updates.continuous_mode import spark_settings
from headwater_airflow.driver.target import Target
from headwater_airflow.roots import home_folder

UPDATE = "run_update.py"
BACKFILL = "run_backfill.py"


def spark_submit() -> str:
    """The ``spark-submit`` of the same environment as this Python, else the one on PATH."""
    beside = Path(sys.executable).with_name("spark-submit")
    return str(beside) if beside.exists() else "spark-submit"


def application(name: str = UPDATE) -> str:
    """The script below ``jobs/`` that the driver runs."""
    return str(home_folder() / "jobs" / name)


def driver_conf(project: PipelineProject, target: Target) -> dict[str, str]:
    """What has to be known before the JVM starts, without any secret.

    Everything here stands on the command line of ``spark-submit`` and in the task's log.

    Raises:
        JarsUnavailable, JarChecksumMismatch: if the jars are neither in the cache nor can be fetched.
        UnsafeStoreSetting, UnsupportedStore: as ``PipelineProject.spark_conf_on`` does.
    """
    spark_ui = project.spec.airflow.spark_ui
    # A short update is over before anybody opens its UI.
    shown = not isinstance(project.spec.trigger, AvailableNow) if spark_ui is None else spark_ui
    ui = {"spark.ui.enabled": "true"} if shown else {}
    conf = {**ui, **spark_settings(project, target.master)}
    return command_line_conf(submit_conf(conf, local=target.local))


def driver_environment(
    project: PipelineProject, target: Target, secrets: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Variables for the driver beside the task, over those of the worker.

    ``secrets``: variables that hold secret parameters.

    Raises:
        JavaNotFound: if there is no Java that Spark runs on.
        StoreRefused: the connection of its store does not do.

    """
    # On a cluster a setting says which Python executors run: a variable would hand this one's path to them.
    python = {"PYSPARK_PYTHON": sys.executable} if target.local else {}
    return {
        **secrets,
        **project.login_variables(),
        **java_environment(),
        **python,
        # spark-submit finds its own Spark by it.
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "HEADWATER_STORAGE": str(project.storage),
        "HEADWATER_WAREHOUSE": str(project.warehouse),
        "PYTHONUNBUFFERED": "1",
        # Of the four seconds that a task has, the rest is for the last records.
        "HEADWATER_STOP_SECONDS": "2",
    }


def driver_arguments(
    project: PipelineProject,
    request: str,
    attempt: int,
    max_attempts: int,
    requested_at: datetime | None = None,
    *,
    announced_together: bool = False,
) -> list[str]:
    """Arguments of the script, without the selection. Nothing secret may be among them: all can see them.

    ``requested_at``: the start of the run, which tells its updates from those before it was cleared (decision 0157).
    ``announced_together``: whether one task announces all tables, when the whole update has ended well.
    """
    made = [] if requested_at is None else ["--requested-at", requested_at.isoformat()]
    return [
        str(project.folder),
        "--storage",
        str(project.storage),
        "--warehouse",
        str(project.warehouse),
        "--request-id",
        request,
        "--attempt",
        str(attempt),
        "--max-attempts",
        str(max_attempts),
        *made,
        *(["--announced-together"] if announced_together else []),
        *parameter_arguments(project),
        "--json",
    ]


def parameter_arguments(project: PipelineProject) -> list[str]:
    """What was given for the run, each joined to its option so that none can pass for one; of a secret, where it lies."""
    return [f"--param={name}={text}" for name, text in project.parameters.items()]
