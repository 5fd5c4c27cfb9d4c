"""``run``: nothing new ends here, all else becomes the Spark job."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from headwater.commands.command_line import main
from headwater.contract.arguments import parse_run_arguments
from headwater.event_log import details, reader
from headwater.event_log.writer import EventLogWriter


class Became(BaseException):
    """Stands for the process that execve would have made of this one; no handler of errors holds it up."""


@pytest.fixture
def became(monkeypatch, tmp_path):
    """Catch the hand-over; a job file and a Java are taken as given."""

    def execve(path, argv, environment):
        raise Became(path, argv, environment)

    (tmp_path / "home" / "jobs").mkdir(parents=True)
    (tmp_path / "home" / "jobs" / "run_update.py").write_text("")
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("headwater.commands.run.java_environment", lambda: {"JAVA_HOME": "/java"})
    monkeypatch.setattr(os, "execve", execve)


def arguments(done, *more):
    project = done.project
    return [
        str(project.folder),
        "--storage",
        str(project.storage),
        "--warehouse",
        str(project.warehouse),
        *more,
    ]


def test_nothing_new_is_recorded_and_reported(done, capsys):
    """An update without news ends with a report and events like any other, and starts nothing."""
    assert main(["run", *arguments(done, "--json", "--request-id", "r7")]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["state"] == "COMPLETED"
    assert {
        (flow["flow"], flow["state"], flow["batches"], flow["input_rows"]) for flow in report["flows"]
    } == {
        ("bronze", "COMPLETED", 0, 0),
        ("silver", "COMPLETED", 0, 0),
        ("gold", "COMPLETED", 0, 0),
    }
    latest = reader.latest_update(done.project.state_folder)
    assert latest is not None
    assert (latest.update_id, latest.request_id, latest.state) == (report["update_id"], "r7", "COMPLETED")
    results = reader.flow_results(done.project.state_folder, request_id="r7")
    assert [(result.flow, result.state, result.output_rows) for result in results] == [
        ("bronze", "COMPLETED", 0),
        ("silver", "COMPLETED", 0),
        ("gold", "COMPLETED", 0),
    ]


def test_nothing_new_is_quick(done):
    """The whole process ends without what takes seconds to load: neither Spark nor Airflow is imported."""
    command = [sys.executable, "-X", "importtime", "-m", "headwater", "run", *arguments(done)]
    ended = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert "no source has moved" in ended.stdout
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines() if "|" in line}
    assert "headwater.updates.news" in imported
    assert {"pyspark", "airflow", "sqlglot"} & imported == set()


@pytest.mark.parametrize(
    "more",
    [
        ["--no-skip"],
        ["--tables=gold"],
        ["--full-refresh-all"],
        ["--reset-checkpoint=silver"],
        ["--flows=gold"],
    ],
    ids=lambda more: more[0],
)
def test_asked_for_more(done, became, more):
    """A selective or forced update runs although nothing has moved."""
    with pytest.raises(Became):
        main(["run", *arguments(done, *more)])


def test_a_dry_run_starts_no_spark(done, became, capsys):
    """The plan and what is left to read come from the manifest and the logs of sources; nothing is written."""
    before = sorted(done.project.storage.rglob("*"))
    done.land("b.json")
    assert main(["run", *arguments(done, "--dry-run", "--json")]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["state"], report["update_id"], len(report["plan"])) == ("PLANNED", None, 3)
    flows = {flow["flow"]: flow for flow in report["flows"]}
    assert (flows["bronze"]["files"], flows["silver"]["moved"]) == (1, False)
    assert flows["bronze"]["bytes"] > 0
    assert main(["run", *arguments(done, "--dry-run", "--full-refresh-all")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("reads all that its sources hold") == 3
    assert main(["run", *arguments(done, "--dry-run", "--flows", "gould")]) == 2
    assert "Did you mean 'gold'" in capsys.readouterr().err
    assert sorted(done.project.storage.rglob("*")) == before


def test_a_dry_run_says_what_a_full_refresh_takes_away(done, became, capsys):
    """The rows of each table that is emptied, for people and programs; a reset keeps them, and a table that is gone has none."""
    assert main(["run", *arguments(done, "--dry-run", "--full-refresh", "silver")]) == 0
    shown = capsys.readouterr().out
    assert "    2 rows go; those that its sources no longer hold do not come back" in shown.splitlines()
    assert main(["run", *arguments(done, "--dry-run", "--full-refresh", "silver", "--json")]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["emptied"] == {"silver": 2}
    assert main(["run", *arguments(done, "--dry-run", "--reset-checkpoint", "silver")]) == 0
    assert "rows go" not in capsys.readouterr().out
    shutil.rmtree(done.table("silver"))
    assert main(["run", *arguments(done, "--dry-run", "--full-refresh", "silver", "--json")]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["emptied"] == {"silver": 0}


def test_a_dry_run_of_changed_sources_resolves_the_graph(done, became):
    """Without a manifest of these sources and these parameters the plan is not known."""
    with pytest.raises(Became):
        main(["run", *arguments(done, "--dry-run", "--param", "x=1")])
    (done.project.folder / "transformations" / "tables.py").write_text("# changed\n")
    with pytest.raises(Became):
        main(["run", *arguments(done, "--dry-run")])


def test_what_failed_is_refreshed_only_if_something_did(done, became, capsys):
    """Without a failure in the last update there is nothing to do, and no Spark; with one there is."""
    assert main(["run", *arguments(done, "--refresh-failed")]) == 0
    assert "nothing was left undone by the last update" in capsys.readouterr().out
    with EventLogWriter(done.project.state_folder, "orders", "orders", "u9") as log:
        log.emit("create_update", "begun", details=details.create_update())
        failed = details.flow_progress(details.FlowStatus.FAILED)
        log.emit("flow_progress", "no", flow="silver", dataset="silver", details=failed)
    with pytest.raises(Became):
        main(["run", *arguments(done, "--refresh-failed")])


def test_long_updates_are_never_skipped(done, became):
    """An update with a processing-time trigger waits for what is to come."""
    spec = done.project.spec_file
    spec.write_text(spec.read_text() + "trigger: {processing_time: 1 second, run_for: 1 minute}\n")
    with pytest.raises(Became):
        main(["run", *arguments(done)])


def test_the_job_gets_the_same_arguments(pipeline, became):
    """The Spark job is this Python with the same arguments, and with the Java that was found."""
    given = arguments(pipeline, "--param", "a=b", "--json", "--attempt=2", "--max-attempts=3")
    with pytest.raises(Became) as caught:
        main(["run", *given])
    path, argv, environment = caught.value.args
    assert path == argv[0] == sys.executable
    assert argv[1].endswith("jobs/run_update.py")
    assert parse_run_arguments(argv[2:]) == parse_run_arguments(given)
    assert environment["JAVA_HOME"] == "/java"
    assert environment["PYTHONPATH"].split(os.pathsep)[0].endswith("include")


def test_validate_is_the_same_job(pipeline, became):
    """``validate`` hands over with its mark."""
    with pytest.raises(Became) as caught:
        main(["validate", *arguments(pipeline)])
    assert "--validate" in caught.value.args[1]


def test_no_job_and_no_pipeline(pipeline, tmp_path, monkeypatch, capsys):
    """A missing job file and a missing pipeline are wrong use, with a sentence, and nothing is written."""
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "nowhere"))
    assert main(["run", *arguments(pipeline)]) == 2
    assert "HEADWATER_HOME" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "nothing"), "--json"]) == 2
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["state"], report["error"]["condition"]) == ("INVALID", "PIPELINE_NOT_FOUND")
    assert not pipeline.project.storage.exists()


def test_no_java(pipeline, became, monkeypatch, capsys):
    """Without a Java the run is refused as wrong use, before anything is written."""
    from headwater.runtime.conditions import JavaNotFound

    def none():
        raise JavaNotFound("no Java 17 or newer was found")

    monkeypatch.setattr("headwater.commands.run.java_environment", none)
    assert main(["run", *arguments(pipeline, "--json")]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["condition"] == "NO_JAVA"
    assert not pipeline.project.storage.exists()


@pytest.mark.parametrize(
    "verb",
    [
        ("run",),
        ("validate",),
        ("run", "--dry-run"),
        ("explain", "gold"),
        ("backfill", "--tables=gold", "--where=id > 0"),
    ],
)
def test_a_folder_without_sources_starts_nothing(done, capsys, became, verb):
    """What the sources have to say can't be asked of a session: the refusal comes before there is one."""
    for file in done.project.source_files():
        file.unlink()
    words = [verb[0], str(done.project.folder), *verb[1:], *arguments(done, "--json")[1:]]
    assert main(words) == 2
    error = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
    assert (error["condition"], error["message"]) == ("INVALID_PIPELINE", "The pipeline has no source files.")
