"""A driver that YARN starts elsewhere: what is sent along, and what its end is taken for."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_airflow.driver.test_target import connection, hook, project

from headwater.errors import FlowFailed
from headwater.event_log.details import FlowStatus, UpdateState, update_progress
from headwater.event_log.writer import EventLogWriter
from headwater.graph.conditions import InvalidParameter
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.file_lease import update_lease
from headwater_airflow.driver import elsewhere, submission
from headwater_airflow.driver.elsewhere import (
    failure_in_log,
    refuse_secrets,
    report_in_log,
    wait_for_running,
)
from headwater_airflow.driver.on_yarn import shipment
from headwater_airflow.driver.shipping import code_archive, pipeline_archive
from headwater_airflow.driver.target import Target

__all__ = ["project"]
YARN = Target("yarn", "cluster")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives are made for this test."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


def test_the_archives_have_what_a_driver_needs(tmp_path: Path):
    """Code without pipelines, and the pipeline; nothing hidden, nothing compiled; the same content has the same name."""
    home, folder = tmp_path / "home", tmp_path / "shop"
    for name in (
        "home/include/headwater/a.py", "home/include/headwater/locks.json", "home/jobs/run_update.py",
        "home/jobs/pipelines/other/pipeline.yml", "home/jobs/__pycache__/run_update.pyc", "home/.env",
        "shop/pipeline.yml", "shop/transformations/orders.py", "shop/.secret",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    code, pipeline = code_archive(home), pipeline_archive(folder)
    with zipfile.ZipFile(code) as packed:
        assert sorted(packed.namelist()) == [
            "include/headwater/a.py",
            "include/headwater/locks.json",
            "jobs/run_update.py",
        ]
    with zipfile.ZipFile(pipeline) as packed:
        assert sorted(packed.namelist()) == ["pipeline.yml", "transformations/orders.py"]
    assert (code_archive(home), pipeline_archive(folder)) == (code, pipeline)
    (folder / "pipeline.yml").write_text("another")
    assert pipeline_archive(folder) != pipeline


def test_the_command_names_nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, project: PipelineProject):
    """But for files that spark-submit itself sends: the archives, the log's settings, the script, the jars."""
    there = shipment(project, submission.driver_conf(project, YARN), submission.application())
    arguments = submission.driver_arguments(project, "request", 1, 3)
    made = hook(
        monkeypatch,
        connection("yarn", **{"deploy-mode": "cluster"}),
        conf=there.conf,
        archives=there.archives,
        files=there.files,
        env_vars={},
        application_args=[there.folder, *arguments[1:]],
    )
    command = made._build_spark_submit_command(there.application)
    text = " ".join(command)
    settings = dict(part.split("=", 1) for part in command if "=" in part and part.startswith("spark."))
    assert command[command.index("--deploy-mode") + 1] == "cluster"
    assert settings["spark.yarn.maxAppAttempts"] == "1"
    assert settings["spark.pyspark.python"] == "/opt/workers/python3"
    assert "spark.pyspark.driver.python" not in settings
    assert settings["spark.yarn.appMasterEnv.PYTHONPATH"] == "headwater_code/include:headwater_code/jobs"
    assert "-Dlog4j2.configurationFile=log4j2.properties" in settings["spark.driver.extraJavaOptions"]
    assert command[command.index("--files") + 1].endswith("/log4j2.properties")
    first, second = command[command.index("--archives") + 1].split(",")
    assert first.endswith(".zip#headwater_code")
    assert second.endswith(f".zip#{project.folder.name}")
    assert command[command.index(submission.application()) + 1] == project.folder.name
    assert "JAVA_HOME" not in text
    assert "Canary" not in text


def test_secrets_of_the_worker_do_not_go_there():
    """There is no way but the command line."""
    refuse_secrets({})
    with pytest.raises(InvalidParameter, match="command line"):
        refuse_secrets({"HEADWATER_SECRET_X": "value"})


def record(
    project: PipelineProject, update: str, state: UpdateState, request: str = "r", **failed: FlowFailed
) -> None:
    """What a driver writes of an update under a request."""
    with EventLogWriter(project.state_folder, project.pipeline_id, "orders", update, request) as log:
        log.emit("create_update", "An update.", details={"create_update": {}})
        for flow, error in failed.items():
            details: Any = {"flow_progress": {"status": FlowStatus.FAILED}}
            log.emit(
                "flow_progress",
                str(error),
                level="ERROR",
                flow=flow,
                dataset=flow,
                details=details,
                error=error,
            )
        log.emit("update_progress", "It ends.", details=update_progress(state))


def test_an_update_that_was_completed(project: PipelineProject):
    """Its report is that of the event log; one from before this driver is none of its own."""
    assert report_in_log(project, "r", None) is None
    record(project, "u1", UpdateState.COMPLETED)
    report = report_in_log(project, "r", None)
    assert report == {"update_id": "u1", "state": "COMPLETED", "flows": []}
    assert failure_in_log(project, "r", report) is None
    assert report_in_log(project, "r", "u1") is None


def test_an_update_that_failed(project: PipelineProject):
    """The flow's own error, with its condition; a retry is of use only where the error says so."""
    record(project, "u1", UpdateState.FAILED, orders=FlowFailed("Flow 'orders' failed: no such column"))
    failure = failure_in_log(project, "r", report_in_log(project, "r", None))
    assert failure is not None
    assert "no such column" in failure.message
    assert not failure.transient
    assert not failure.silent


def test_an_update_that_was_stopped(project: PipelineProject):
    """It goes on with the next attempt."""
    record(project, "u1", UpdateState.CANCELED)
    failure = failure_in_log(project, "r", report_in_log(project, "r", None))
    assert failure is not None
    assert failure.transient


def test_a_driver_that_left_no_record(project: PipelineProject):
    """It was killed, or never began: the end is to be written for it, and another attempt may do."""
    record(project, "u1", UpdateState.RUNNING)
    failure = failure_in_log(project, "r", report_in_log(project, "r", None))
    assert failure is not None
    assert failure.transient
    assert failure.silent


@pytest.mark.parametrize(
    ("code", "transient"), [(None, True), (137, True), (1, True), (2, False), (3, False)]
)
def test_what_a_pod_ended_with_decides_where_there_is_no_record(
    project: PipelineProject, code: int | None, transient: bool
):
    """A definition that can't be run gives 2 each time; a driver that was killed may do better."""
    failure = failure_in_log(project, "r", report_in_log(project, "r", None), code)
    assert failure is not None
    assert failure.transient is transient


def test_a_driver_that_still_runs_is_followed(project: PipelineProject, monkeypatch: pytest.MonkeyPatch):
    """After a lost worker the next attempt waits for its end, and starts no second one; a dead one is not waited for."""
    record(project, "u1", UpdateState.RUNNING)
    told: list[str] = []

    class Log:
        def info(self, text: str, *values: object) -> None:
            told.append(text % values)

    assert wait_for_running(project, "r", Log()) is None
    assert not told
    looks = iter([lambda: None, lambda: record(project, "u1", UpdateState.COMPLETED)])
    monkeypatch.setattr(elsewhere.time, "sleep", lambda _: next(looks)())
    with update_lease(project.state_folder, "u1"):
        assert wait_for_running(project, "r", Log()) == "u1"
    assert told == ["The driver of update u1 still runs: it is followed."]
