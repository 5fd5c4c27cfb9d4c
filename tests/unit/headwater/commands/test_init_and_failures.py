"""``init``, and how every command ends when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from headwater.commands.command_line import main
from headwater.contract.failure_report import run_and_report
from headwater.errors import FlowFailed, UpdateInProgress
from headwater.graph.pipeline_project import open_project


def test_init_writes_a_valid_pipeline(tmp_path, capsys):
    """The pipeline has a spec that reads, sources that compile, data, and no template's ending is left."""
    folder = tmp_path / "my pipeline"
    assert main(["init", str(folder)]) == 0
    assert "python -m headwater run" in capsys.readouterr().out
    project = open_project(folder, storage=tmp_path / "s", warehouse=tmp_path / "w")
    assert project.pipeline_id == "my_pipeline"
    (source,) = project.source_files()
    compile(source.read_text(), str(source), "exec")
    for file in sorted((folder / "data" / "readings").iterdir()):
        assert all(json.loads(line) for line in file.read_text().splitlines())
    assert not list(folder.rglob("*.tmpl"))
    assert "$" not in project.spec_file.read_text()


def test_init_with_a_name(tmp_path, capsys):
    """The name can be given; one that can't serve is refused before anything is written."""
    assert main(["init", str(tmp_path / "a"), "--name", "weather-2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "weather-2"
    assert main(["init", str(tmp_path / "b"), "--name", "../up"]) == 2
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", ["2026", "on", "null", "1e3", "0x1F", "true", "_1"])
def test_init_names_that_yaml_takes_for_something_else(tmp_path, capsys, name):
    """A folder named like a number or a truth value gives a pipeline of that name, which can be read."""
    assert main(["init", str(tmp_path / name)]) == 0
    capsys.readouterr()
    project = open_project(tmp_path / name, storage=tmp_path / "s", warehouse=tmp_path / "w")
    assert project.pipeline_id == name


def test_init_spares_what_is_there(tmp_path):
    """A folder with something in it is refused and left as it was."""
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_init_where_no_folder_can_be_made(tmp_path, capsys):
    """A place below a file is wrong use, which says what stands in the way."""
    (tmp_path / "notes").write_text("mine")
    assert main(["init", str(tmp_path / "notes" / "shop")]) == 2
    shown = capsys.readouterr().err
    assert "can't be made a folder: Not a directory" in shown
    assert "Unexpected" not in shown
    assert main(["init", ""]) == 2
    assert "No folder is given" in capsys.readouterr().err


def failing(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "state"),
    [
        (FlowFailed("It broke.", where="a.py:3"), 1, "FAILED"),
        (UpdateInProgress("Another one runs."), 3, "REFUSED"),
        (PermissionError(13, "Permission denied", "/nowhere/x"), 3, "REFUSED"),
        (NotADirectoryError(20, "Not a directory", "/nowhere/x"), 3, "REFUSED"),
        (ZeroDivisionError("division by zero"), 1, "FAILED"),
        (KeyboardInterrupt(), 1, "FAILED"),
    ],
)
def test_errors_end_as_the_contract_says(error, code, state, capsys, monkeypatch):
    """Each kind of error has its exit code and state, a sentence on standard error, and no traceback."""
    monkeypatch.delenv("HEADWATER_DEBUG", raising=False)
    assert run_and_report(failing(error), as_json=True) == code
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert (report["state"], report["flows"]) == (state, [])
    assert report["error"]["message"]
    assert "Traceback" not in shown.err


def test_debug_shows_the_traceback(capsys, monkeypatch):
    """With HEADWATER_DEBUG an unexpected error shows where it came from; without, how to see it."""
    run_and_report(failing(ValueError("odd")), as_json=False)
    assert "HEADWATER_DEBUG=1" in capsys.readouterr().err
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    run_and_report(failing(ValueError("odd")), as_json=False)
    assert "Traceback" in capsys.readouterr().err


def test_wrong_use_with_json(capsys):
    """Also an unknown verb and a missing argument end with a JSON line and code 2."""
    for argv in (["fly", "--json"], ["run", "--json"], ["--json"]):
        assert main(argv) == 2
        assert json.loads(capsys.readouterr().out)["state"] == "INVALID"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_that_the_terminal_cannot_show(tmp_path, encoding):
    """What an encoding lacks is escaped: no command ends over it, and JSON stays JSON."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for name, arguments in (("sch\N{SNOWMAN}n", []), ("z\N{SNOWMAN}", ["--json"])):
        ended = subprocess.run(
            [sys.executable, "-m", "headwater", "init", str(tmp_path / name), *arguments],
            env=environment, capture_output=True, text=True, encoding=encoding, timeout=60, check=False,
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "2603" in ended.stdout
    assert json.loads(ended.stdout)["folder"] == str(tmp_path / name)


@pytest.mark.parametrize(
    ("ending", "code"), [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), ("> /dev/full", 1)]
)
def test_output_that_leads_nowhere(done, ending, code):
    """With a closed or a full standard output a command does its work, or says why not; there is no traceback."""
    project = done.project
    for verb in ("checkpoints", "status --json"):
        command = f'exec {sys.executable} -m headwater {verb} "$0" --storage "$1" {ending}'
        ended = subprocess.run(
            ["bash", "-c", command, str(project.folder), str(project.storage)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert ended.returncode == code
        assert "Traceback" not in ended.stderr
        assert not code or "No space left" in ended.stderr


def test_a_reader_that_leaves_early(done):
    """Output into a closed pipe ends without a complaint."""
    project = done.project
    command = [
        sys.executable,
        "-m",
        "headwater",
        "graph",
        str(project.folder),
        f"--storage={project.storage}",
    ]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    assert "Traceback" not in ended.stderr
    assert "Broken" not in ended.stderr


def test_help_and_version(capsys):
    """Help lists the verbs, and the version is printed, each with code 0."""
    for flag, word in (("--help", "checkpoints"), ("--version", "headwater 0.")):
        with pytest.raises(SystemExit) as caught:
            main([flag])
        assert caught.value.code == 0
        assert word in capsys.readouterr().out
