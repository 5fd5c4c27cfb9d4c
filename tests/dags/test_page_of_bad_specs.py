"""One bad pipeline.yml is that pipeline's trouble alone: on the page, in links, in its DAG file, on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dags.pipeline_folder import write_pipeline
from tests.dags.test_page import page, words
from tests.unit.headwater.graph.test_spec_text import BAD_VALUES

from headwater.commands.command_line import main
from headwater.errors import InvalidSpec
from headwater.graph.conditions import PipelineIdTaken
from headwater_airflow.dag import PipelineDag
from headwater_airflow.following.request import request_id
from headwater_airflow.links import SparkUiLink
from headwater_airflow.page import projects

__all__ = ["page"]
ADDRESSES = ("/", "/pipelines/good", "/pipelines/good/checkpoints")


@pytest.fixture
def pipelines(roots):
    """A pipeline that is well, and the folder of one that is not."""
    write_pipeline(roots / "pipelines" / "good")
    bad = roots / "pipelines" / "bad"
    bad.mkdir()
    return bad


def test_the_others_are_shown(page, pipelines, capsys):
    """Each bad value: every address answers; the list shows the error with its line; CLI, DAG and link name it, too."""
    for text, line in BAD_VALUES.values():
        (pipelines / "pipeline.yml").write_text(text)
        for address in ADDRESSES:
            shown = words(page(address))
        shown = words(page("/"))
        assert "bad broken" in shown
        assert f"pipeline.yml:{line}" in shown
        assert "good not run yet" in shown
        with pytest.raises(InvalidSpec):
            PipelineDag("bad")
        assert main(["status", str(pipelines)]) == 2
        errors = capsys.readouterr().err
        assert "[INVALID_SPEC]" in errors
        assert "Traceback" not in errors
        assert link("bad") == ""


@pytest.mark.parametrize("address", ["javascript:alert(1)", 7, "http://127.0.0.1:4040"])
def test_only_an_address_of_the_web_becomes_a_link(pipelines, roots, address):
    """What a file in storage says is run by nobody's browser."""
    state = roots / "storage" / "pipelines" / "good"
    state.mkdir(parents=True)
    driver = {"request_id": request_id("good", "r"), "update_id": "u", "spark_ui": address}
    (state / "driver.json").write_text(json.dumps(driver))
    assert link("good") == (address if str(address).startswith("http") else "")


def link(dag_id):
    """What the Spark UI's link of a task says."""
    return SparkUiLink().get_link(None, ti_key=SimpleNamespace(dag_id=dag_id, run_id="r"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=40) | st.text(alphabet="an:-&*!'\"{}[], \n\t#0\\", max_size=40).map(str.encode)
)
def test_generated_specs(page, pipelines, content):
    """Whatever stands in the file."""
    (pipelines / "pipeline.yml").write_bytes(b"name: bad\n" + content)
    for address in ADDRESSES:
        page(address)


@pytest.mark.parametrize(
    "error", [RecursionError("too deep"), KeyError("x"), MemoryError(), AssertionError()]
)
def test_an_error_that_nobody_thought_of(page, pipelines, monkeypatch, error):
    """Its kind is shown at its pipeline; the others are as they were."""
    (pipelines / "pipeline.yml").write_text("name: bad\n")
    opened = projects.pipeline_project

    def failing(folder, **given):
        if folder == "bad":
            raise error
        return opened(folder, **given)

    monkeypatch.setattr(projects, "pipeline_project", failing)
    for address in ADDRESSES:
        page(address)
    assert "bad broken" in words(page("/"))
    assert type(error).__name__ in words(page("/"))


def test_a_link_never_fails(pipelines, monkeypatch):
    """Also where pipelines can't be listed at all."""
    monkeypatch.setattr(projects, "all_projects", lambda: 1 / 0)
    assert link("good") == ""


def test_the_command_line_shows_no_traceback(pipelines):
    """As a process of its own, as users call it."""
    (pipelines / "pipeline.yml").write_text("name: a\nconfiguration: &a {x: *a}\n")
    command = [sys.executable, "-m", "headwater", "graph", str(pipelines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": "include"})
    assert done.returncode == 2
    assert done.stderr.startswith("[INVALID_SPEC] An anchor holds an alias of itself.")


def test_two_folders_of_one_id(page, pipelines):
    """Neither is shown with the other's state, neither has a DAG; the others are as they were."""
    write_pipeline(pipelines.parent / "medallion")
    (pipelines / "pipeline.yml").write_text("name: Copied\nid: medallion\nstorage: state\n")
    shown = words(page("/"))
    assert "bad broken" in shown
    assert "medallion broken" in shown
    assert "have the same id, 'medallion'" in shown
    assert "good not run yet" in shown
    for folder in ("bad", "medallion"):
        with pytest.raises(PipelineIdTaken):
            PipelineDag(folder)
    words(page("/pipelines/medallion"))
