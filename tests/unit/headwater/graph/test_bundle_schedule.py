"""A bundle's pipeline begins when its job begins it, as far as Airflow can say so; else a sentence says why not."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.graph.asset_bundle import bundle_pipeline

DAILY = {"schedule": {"quartz_cron_expression": "0 0 ${var.hour} * * ?", "timezone_id": "UTC"}}


def bundle(*jobs: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A bundle with the pipeline ``shop`` and jobs that start it."""
    task = {"task_key": "t", "pipeline_task": {"pipeline_id": "${resources.pipelines.shop.id}"}}
    tasks = {"tasks": [{"task_key": "before", "notebook_task": {}}, task]}
    return {
        "variables": {"hour": {"default": "3"}},
        "resources": {
            "pipelines": {"shop": {"name": "shop", **settings}, "other": {"name": "other"}},
            "jobs": {f"job{number}": {**tasks, **job} for number, job in enumerate(jobs)},
        },
    }


@pytest.mark.parametrize(
    ("times", "schedule"),
    [
        (DAILY, "0 3 * * *"),
        ({"trigger": {"periodic": {"interval": 6, "unit": "HOURS"}}}, "0 */6 * * *"),
        ({"trigger": {"periodic": {"interval": 1, "unit": "WEEKS"}}}, "0 0 * * 0"),
        ({"trigger": {"file_arrival": {"url": "s3://landing/"}, "pause_status": "UNPAUSED"}}, "on_data"),
        ({"trigger": {"table_update": {"table_names": ["a.b.c"]}}}, "on_data"),
        ({"continuous": {}}, "@continuous"),
    ],
)
def test_times_of_a_job(times: dict[str, Any], schedule: str):
    """Every kind, with variables filled in; what the settings have under ``airflow`` stays."""
    read = bundle_pipeline(bundle(times, airflow={"owner": "shop"}), "shop")
    assert read.settings["airflow"] == {"owner": "shop", "schedule": schedule}
    notes = {note.setting: note for note in read.notes}
    assert notes["resources.jobs.job0"].becomes == "airflow"
    assert repr(schedule) in notes["resources.jobs.job0"].sentence
    assert "resources.jobs" not in notes


@pytest.mark.parametrize(
    ("jobs", "settings", "says"),
    [
        ([{}], {}, "begun by hand"),
        ([{"schedule": {**DAILY["schedule"], "timezone_id": "Europe/Paris"}}], {}, "no cron text in UTC"),
        ([{"schedule": {"quartz_cron_expression": "0 0 0 L * ?", "timezone_id": "UTC"}}], {}, "no cron text"),
        ([{"trigger": {"periodic": {"interval": 7, "unit": "HOURS"}}}], {}, "no cron text"),
        ([{"trigger": {"model": {}}}], {}, "no cron text"),
        ([{"schedule": {**DAILY["schedule"], "pause_status": "PAUSED"}}], {}, "it is paused"),
        ([DAILY], {"airflow": {"schedule": None}}, "which wins"),
        ([DAILY], {"continuous": True}, "updates do not end"),
        ([DAILY, {"continuous": {}}], {}, "job0: 0 3 * * *, job1: @continuous"),
    ],
)
def test_times_that_are_not_taken(jobs: list[dict[str, Any]], settings: dict[str, Any], says: str):
    """Each job has a sentence that says why, and the settings are as they were."""
    read = bundle_pipeline(bundle(*jobs, **settings), "shop")
    assert read.settings == {"name": "shop", **settings}
    said = [note for note in read.notes if note.setting.startswith("resources.jobs.")]
    assert len(said) == len(jobs)
    assert all(says in note.sentence and note.becomes is None for note in said)


@pytest.mark.parametrize(
    "jobs",
    [{"nightly": None}, {"nightly": {"tasks": {}}}, {"nightly": {"tasks": [None, {"pipeline_task": 1}]}}, []],
)
def test_jobs_that_start_nothing(jobs: object):
    """However a job is written that starts no pipeline, the settings are as they were."""
    data = bundle(DAILY)
    data["resources"]["jobs"] = jobs
    assert bundle_pipeline(data, "shop").settings == {"name": "shop"}


def test_whose_jobs_they_are():
    """Another pipeline's job says nothing; two that agree are one."""
    other = bundle_pipeline(bundle(DAILY), "other")
    assert other.settings == {"name": "other"}
    assert "resources.jobs" in {note.setting for note in other.notes}
    assert bundle_pipeline(bundle(DAILY, DAILY), "shop").settings["airflow"] == {"schedule": "0 3 * * *"}
