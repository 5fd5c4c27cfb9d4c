"""How the driver of an update is started by ``spark-submit``: settings, environment, arguments."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from headwater.definitions.trigger import ProcessingTime
from headwater.graph.pipeline_project import PipelineProject
from headwater.runtime.java import java_environment
from headwater.runtime.submit import command_line_conf, submit_conf
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


def driver_conf(project: PipelineProject, master: str) -> dict[str, str]:
    """What has to be known before the JVM starts, without any secret; ``master`` as the connection names it.

    Everything here stands on the command line of ``spark-submit`` and in the task's log.

    Raises:
        JarsUnavailable, JarChecksumMismatch: if the jars are neither in the cache nor can be fetched.

    """
    spark_ui = project.spec.airflow.spark_ui
    # A short update is over before anybody opens its UI.
    shown = isinstance(project.spec.trigger, ProcessingTime) if spark_ui is None else spark_ui
    ui = {"spark.ui.enabled": "true"} if shown else {}
    return command_line_conf(submit_conf({**ui, **project.spec.spark}, local=master.startswith("local")))


def driver_environment(project: PipelineProject) -> dict[str, str]:
    """Variables for the driver, over those of the worker.

    Raises:
        JavaNotFound: if there is no Java that Spark runs on.

    """
    return {
        **java_environment(),
        "PYSPARK_PYTHON": sys.executable,
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
) -> list[str]:
    """Arguments of the script, without the selection. Nothing secret may be among them: all can see them.

    ``requested_at``: the start of the run, which tells its updates from those before it was cleared (decision 0157).
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
        "--json",
    ]
