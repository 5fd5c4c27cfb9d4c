"""``run`` and ``validate``: decide whether there is anything to do, then hand over to Spark's process."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import headwater
from headwater.contract.arguments import RunArguments
from headwater.errors import UsageError
from headwater.files.json_lines import lines_of
from headwater.graph.pipeline_project import open_project
from headwater.graph.required_sources import required_sources
from headwater.runtime.java import java_environment
from headwater.updates.continuous_mode import refuse_selection, with_trigger
from headwater.updates.news import news_for
from headwater.updates.planned_update import fitting_manifest, planned_update
from headwater.updates.quiet_update import record_quiet_update

_log = logging.getLogger("headwater.run")
_JOB = "run_update.py"


def run(arguments: RunArguments) -> int:
    """Run an update. Where nothing has moved it is recorded and reported here, without a JVM.

    Otherwise this process becomes the Spark job's, which parses the same arguments.
    """
    started = time.monotonic()
    project = open_project(
        arguments.pipeline,
        storage=arguments.storage,
        warehouse=arguments.warehouse,
        parameters=arguments.parameters,
    )
    project = with_trigger(project, arguments.continuous)
    project.check_parameters()
    required_sources(project)
    if not arguments.dry_run and not arguments.validate:
        refuse_selection(project, arguments.selection)
    if arguments.dry_run and (manifest := fitting_manifest(project)) is not None:
        planned_update(project, manifest, arguments.selection).show(as_json=arguments.as_json)
        return 0
    verdict = news_for(project, arguments)
    if verdict is not None and not verdict.moved and verdict.manifest is not None:
        report = record_quiet_update(project, verdict.manifest, arguments, started, verdict.reasons)
        report.show(as_json=arguments.as_json)
        return report.exit_code
    if verdict is not None:
        usual = logging.INFO if os.environ.get("HEADWATER_DEBUG") else logging.DEBUG
        level = logging.WARNING if verdict.unexpected else usual
        about = {"pipeline": project.pipeline_id}
        _log.log(level, "Starting Spark: %s.", "; ".join(verdict.reasons), extra=about)
    become_job(arguments)
    return 1


def job_file(name: str = _JOB) -> Path:
    """A program under ``jobs/``: of HEADWATER_HOME, else of the checkout that this package lies in."""
    home = os.environ.get("HEADWATER_HOME")
    root = Path(home) if home else Path(headwater.__file__).resolve().parents[2]
    job = root / "jobs" / name
    if not job.is_file():
        raise UsageError(
            f"There is no {name} to start Spark with.",
            where=job,
            remedy="Set HEADWATER_HOME to the checkout of Headwater.",
        )
    return job


def become_job(arguments: RunArguments) -> None:
    """Replace this process by the Spark job; raises JavaNotFound before that where there is no Java."""
    become_program(_JOB, arguments.to_argv())


def become_program(name: str, argv: Sequence[str]) -> None:
    """Replace this process by a program under ``jobs/`` that starts Spark; raises JavaNotFound, UsageError."""
    job, environment = job_file(name), _job_environment()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, str(job), *argv], environment)  # noqa: S606 - our own program


def report_of_program(name: str, argv: Sequence[str]) -> Mapping[str, Any]:
    """Run a program under ``jobs/`` with ``--json`` and return its last line; raises JavaNotFound, UsageError."""
    command = [sys.executable, str(job_file(name)), *argv]
    done = subprocess.run(command, env=_job_environment(), stdout=subprocess.PIPE, text=True, check=False)
    try:
        report = json.loads((lines_of(done.stdout) or [""])[-1])
    except json.JSONDecodeError:
        report = None
    if isinstance(report, dict):
        return report
    return {"error": {"message": f"The driver ended without a report (exit code {done.returncode})."}}


def _job_environment() -> dict[str, str]:
    ground = str(Path(headwater.__file__).resolve().parents[1])
    paths = [ground, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **java_environment(), "PYTHONPATH": os.pathsep.join(paths)}
