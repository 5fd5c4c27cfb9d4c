"""When the jobs of a bundle begin its pipeline: the schedule of the pipeline's DAG.

Decision 0161.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.definitions.airflow_spec import CONTINUOUS, ON_DATA
from headwater.definitions.cron_text import every, from_quartz_text
from headwater.graph.lakeflow_spec import SettingNote

# What of a job says when it begins.
TIMES = ("schedule", "trigger", "continuous")
_ON_DATA = ("file_arrival", "table_update", "table")
_WRITE = "write `airflow: {schedule: ...}`"


@dataclass(frozen=True)
class JobTimes:
    """When a job begins. ``schedule``: as Airflow has it, None where ``why`` says why not."""

    job: str
    schedule: str | None
    why: str = ""

    @property
    def setting(self) -> str:
        """The job in its bundle."""
        return f"resources.jobs.{self.job}"


def jobs_of(pipeline: str, jobs: Mapping[str, Any]) -> Iterator[str]:
    """The jobs with a task that starts the pipeline of this key."""
    reference = f"${{resources.pipelines.{pipeline}.id}}"
    for name, job in jobs.items():
        tasks = job.get("tasks") if isinstance(job, Mapping) else None
        if any(_starts(task, reference) for task in (tasks if isinstance(tasks, list) else ())):
            yield str(name)


def _starts(task: Any, reference: str) -> bool:
    started = task.get("pipeline_task") if isinstance(task, Mapping) else None
    return isinstance(started, Mapping) and str(started.get("pipeline_id")).strip() == reference


def job_times(job: str, times: Mapping[str, Any]) -> JobTimes:
    """When a job begins, by its ``schedule``, ``trigger`` or ``continuous`` (variables filled in)."""
    kind = next((kind for kind in TIMES if isinstance(times.get(kind), Mapping)), None)
    if kind is None:
        return JobTimes(job, None, "it is begun by hand, as a pipeline without `airflow: {schedule: ...}` is")
    if str(times[kind].get("pause_status")).upper() == "PAUSED":
        return JobTimes(job, None, f"it is paused; to begin runs by the clock {_WRITE}")
    schedule = _CRON[kind](times[kind])
    if schedule is None:
        return JobTimes(job, None, f"no cron text in UTC says its times; {_WRITE}")
    return JobTimes(job, schedule)


def _by_schedule(schedule: Mapping[str, Any]) -> str | None:
    text, zone = schedule.get("quartz_cron_expression"), schedule.get("timezone_id", "UTC")
    return from_quartz_text(str(text), str(zone))


def _by_trigger(trigger: Mapping[str, Any]) -> str | None:
    periodic = trigger.get("periodic")
    if isinstance(periodic, Mapping):
        return every(str(periodic.get("interval")), str(periodic.get("unit")).upper().removesuffix("S"))
    return ON_DATA if any(kind in trigger for kind in _ON_DATA) else None


def _always(_: Mapping[str, Any]) -> str:
    return CONTINUOUS


_CRON: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "schedule": _by_schedule,
    "trigger": _by_trigger,
    "continuous": _always,
}


def scheduled(settings: Mapping[str, Any], jobs: list[JobTimes]) -> tuple[dict[str, Any], list[SettingNote]]:
    """The settings of a pipeline with the schedule of its jobs, and what became of each job."""
    notes = [SettingNote(job.setting, job.why) for job in jobs if job.schedule is None]
    timed = [job for job in jobs if job.schedule is not None]
    overruled = _overruled(settings, timed)
    if not timed or overruled is not None:
        return dict(settings), notes + [SettingNote(job.setting, str(overruled)) for job in timed]
    schedule = timed[0].schedule
    notes += [
        SettingNote(
            job.setting, f"`schedule: {schedule!r}`; what else it does is a DAG of your own", "airflow"
        )
        for job in timed
    ]
    return {**settings, "airflow": {**settings.get("airflow", {}), "schedule": schedule}}, notes


def _overruled(settings: Mapping[str, Any], timed: list[JobTimes]) -> str | None:
    """Why the times of jobs have no effect; None where they have."""
    airflow = settings.get("airflow", {})
    if not isinstance(airflow, Mapping) or "schedule" in airflow:
        return "the pipeline has `airflow: {schedule: ...}`, which wins"
    if settings.get("continuous") is True:
        return "the pipeline is continuous, and its updates do not end"
    if len({job.schedule for job in timed}) > 1:
        listed = ", ".join(f"{job.job}: {job.schedule}" for job in timed)
        return f"an update is for all tables, and the jobs begin it at different times ({listed}); {_WRITE}"
    return None
