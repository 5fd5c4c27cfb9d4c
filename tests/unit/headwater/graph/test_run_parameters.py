"""Parameters of a pipeline: declared in its spec, given for a run, checked wherever they come from."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from headwater.errors import InvalidSpec
from headwater.event_log.redaction import redact_text
from headwater.graph.conditions import InvalidParameter
from headwater.graph.pipeline_project import PipelineProject, open_project

SPEC = """name: shop
configuration: {landing: data}
parameters:
  day: {type: date, required: true, description: Which day}
  limit: {type: integer, default: 10, enum: [10, 20]}
  rate: 0.5
  region: eu
  note:
  token: {secret: true, default: "env:SHOP_KEY"}
"""
KEY = "s3cr3t-of-the-shop"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline with parameters of several types."""
    (tmp_path / "transformations").mkdir()
    (tmp_path / "pipeline.yml").write_text(SPEC)
    return tmp_path


def opened(folder: Path, environment: dict | None = None, **given: object) -> PipelineProject:
    """The pipeline with values for a run."""
    variables = {"SHOP_KEY": KEY} if environment is None else environment
    return open_project(folder, storage=folder / ".storage", parameters=given, environment=variables)


def test_values_are_typed_and_the_configuration_has_their_texts(folder: Path):
    """Sources in SQL get typed values, sources in Python the same as text; a default counts where nothing is given."""
    project = opened(folder, day="2026-01-31", limit=20, landing="other")
    assert project.parameter_values == {
        "day": date(2026, 1, 31), "limit": 20, "rate": 0.5, "region": "eu", "note": None, "token": KEY,
    }  # fmt: skip
    assert project.configuration == {
        "landing": "other", "day": "2026-01-31", "limit": "20", "rate": "0.5", "region": "eu", "token": KEY,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("limit", "ten", "whole number"),
        ("limit", "11", "one of: 10, 20"),
        ("day", "2026-02-30", "must be a date"),
        ("rate", [1], "finite number"),
        ("dya", "2026-01-01", "Did you mean 'day'"),
        ("landign", "x", "Did you mean 'landing'"),
        ("x=1 --full-refresh-all", "x", "no parameter"),
        ("token", KEY, "can't be given in plain text"),
        ("region", "a\0b", "without NUL"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(folder: Path, name: str, value: object, says: str):
    """Wrong types, values that are not listed, unknown names and plain secrets: by name, and a secret is not repeated."""
    with pytest.raises(InvalidParameter) as caught:
        opened(folder, **{name: value})
    assert says in str(caught.value)
    assert KEY not in str(caught.value)
    assert str(folder / "pipeline.yml") in caught.value.where
    lines = (folder / "pipeline.yml").read_text().split("\n")
    declared = [number for number, line in enumerate(lines, 1) if line.strip().startswith(f"{name}:")]
    if declared:
        assert caught.value.where.endswith(f"pipeline.yml:{declared[0]}")


def test_a_required_one_is_missed_only_where_sources_run(folder: Path):
    """Status, lag and the page need no value; an update does."""
    project = opened(folder)
    assert "day" not in project.configuration
    with pytest.raises(InvalidParameter, match="'day' is required") as caught:
        project.check_parameters()
    lines = (folder / "pipeline.yml").read_text().split("\n")
    assert lines[int(str(caught.value.where).rpartition(":")[2]) - 1].strip().startswith("day:")


def test_the_variable_of_a_secret_is_missed_by_name(folder: Path):
    """A secret that leads nowhere is refused with its reference; one of Airflow's is refused outside it."""
    with pytest.raises(InvalidParameter, match="refers to env:SHOP_KEY, which is not set"):
        opened(folder, {}, day="2026-01-31").check_parameters()
    with pytest.raises(InvalidParameter, match="only Airflow can look up"):
        opened(folder, day="2026-01-31", token="connection:shop").check_parameters()


def test_secrets_are_shown_nowhere(folder: Path):
    """Not in what the event log records, not in texts that quote the value, not in the hash of the run."""
    project = opened(folder, day="2026-01-31")
    assert project.shown_parameters["token"] == "[redacted]"
    assert project.shown_parameters["day"] == "2026-01-31"
    assert KEY not in redact_text(f"it said {KEY}")
    assert KEY not in repr(project)
    other = opened(folder, {"OTHER": "another-secret"}, day="2026-01-31", token="env:OTHER")
    assert other.parameters_hash() == project.parameters_hash()


def test_a_value_that_is_the_default_is_no_change(folder: Path):
    """A form that is sent as it stands is the same run as one without a form."""
    assert opened(folder, limit="10", rate=0.5, region="eu").parameters == {}
    assert opened(folder, limit="10").parameters_hash() == ""


def test_a_pipeline_without_parameters_takes_any_value(tmp_path: Path):
    """As ever: `spark.conf.get` with a default needs no declaration. Names of the platform stay a closed list."""
    (tmp_path / "pipeline.yml").write_text("name: a\n")
    assert opened(tmp_path, colour="red").configuration == {"colour": "red"}
    with pytest.raises(InvalidParameter, match="there is no setting"):
        opened(tmp_path, **{"pipelines.triger.interval": "1 s"})


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("  a-b: 1", 3, "letters, digits and underscores"),
        ("  tables: 1", 3, "field of this name"),
        ("  day: {type: dat}", 3, "'date'"),
        ("  day: {typ: date}", 3, "Unknown key `parameters.day.typ`. Did you mean `type`"),
        ("  n: {type: integer, default: ten}", 3, "the default must be a whole number"),
        ("  n:\n    type: integer\n    enum: [1, x]", 5, "each value must be a whole number"),
        ("  n: {type: integer, default: 3, enum: [1, 2]}", 3, "must be one of: 1, 2"),
        ("  t: {secret: true, default: plainly}", 3, "given as a reference"),
        ("  t: {secret: true, type: integer}", 3, "a secret is a string"),
        ("  api_token: x", 3, "`secret` must say true"),
        ("  colour: red\nconfiguration: {colour: blue}", 3, "both have 'colour'"),
        ("  day: {required: true}\nairflow: {schedule: '@daily'}", 3, "nobody to fill it in"),
        ("  day: {required: true}\ntrigger: {processing_time: 5 s}", 3, "nobody to fill it in"),
    ],
)
def test_a_wrong_declaration_is_refused_at_its_line(tmp_path: Path, text: str, line: int, says: str):
    """Names, types, defaults, listed values and secrets are checked before anything is read."""
    (tmp_path / "pipeline.yml").write_text(f"name: a\nparameters:\n{text}\n")
    with pytest.raises(InvalidSpec) as caught:
        opened(tmp_path)
    assert says in caught.value.what
    assert caught.value.where.endswith(f"pipeline.yml:{line}")
    assert "plainly" not in str(caught.value)
