"""What the platform's programs print of a pipeline is read as its settings, or the error says what to ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater.graph.pipeline_project import open_project
from headwater.graph.spec_file import read_source, read_spec

ANSWER: dict[str, Any] = {
    "creator_user_name": "a@b.c", "health": "HEALTHY", "last_modified": 1732000000000,
    "latest_updates": [{"state": "COMPLETED", "update_id": "u"}], "name": "Shop", "pipeline_id": "p1", "state": "IDLE",
    "spec": {
        "id": "p1", "name": "Shop", "catalog": "main", "schema": "shop", "root_path": "/Workspace/shop", "serverless": True,
        "libraries": [{"glob": {"include": "/Workspace/shop/transformations/**"}}],
    },
}  # fmt: skip


def written(folder: Path, value: object, name: str = "pipeline.json") -> Path:
    """A file with the value as JSON."""
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return path


@pytest.mark.parametrize("name", ["pipeline.json", "pipeline.yml"])
def test_the_settings_under_spec_are_the_pipeline(tmp_path: Path, name: str):
    """As JSON and as YAML; all around them has one sentence, and each setting its own."""
    source = read_source(written(tmp_path, ANSWER, name))
    spec = read_spec(tmp_path / name, {})
    assert (spec.name, spec.pipeline_id, spec.catalog, spec.schema_name) == ("Shop", "p1", "main", "shop")
    assert [library.pattern for library in spec.libraries] == ["transformations/**"]
    around = "creator_user_name, health, last_modified, latest_updates, name, pipeline_id, state"
    assert [note.setting for note in source.notes] == [around, "root_path", "serverless"]


def test_a_fault_under_spec_has_its_line(tmp_path: Path):
    """The settings are checked where they stand in the file."""
    path = written(tmp_path, {**ANSWER, "spec": {**ANSWER["spec"], "clustrs": []}})
    with pytest.raises(InvalidSpec, match="Did you mean `clusters`") as caught:
        read_spec(path, {})
    line = path.read_text().splitlines().index('  "clustrs": []') + 1
    assert caught.value.where == f"{path}:{line}"


LISTED = {"pipeline_id": "p1", "name": "Shop", "state": "IDLE"}
TASK = {"task_key": "t", "pipeline_task": {"pipeline_id": "p1"}}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([LISTED], "a list of pipelines"),
        ({"statuses": [LISTED]}, "a list of pipelines"),
        (LISTED, "a pipeline's state"),
        ({"job_id": 5, "settings": {"tasks": [TASK]}}, "a job"),
        ({"name": "nightly", "tasks": [TASK]}, "a job"),
    ],
)
def test_what_holds_no_settings_is_named(tmp_path: Path, value: object, what: str):
    """A list of pipelines, a pipeline's state and a job are refused with the command that prints settings."""
    with pytest.raises(InvalidSpec) as caught:
        read_spec(written(tmp_path, value), {})
    assert what in caught.value.what
    assert "databricks pipelines get <pipeline_id> -o json" in (caught.value.remedy or "")


def test_a_key_of_a_spec_is_none_of_an_answer(tmp_path: Path):
    """`spec` and `tasks` of somebody's own in pipeline.yml are unknown keys, as before."""
    for text in ("name: a\nspec: {name: b}\n", "name: a\ntasks: watched\n"):
        with pytest.raises(InvalidSpec, match="Unknown key"):
            read_spec(written(tmp_path, text, "pipeline.yml"), {})


def test_a_summary_of_a_bundle(tmp_path: Path):
    """What `bundle summary` adds to a pipeline is noted; its paths lie below the folder that was deployed."""
    pipeline = {**ANSWER["spec"], "url": "https://x", "modified_status": "created"}
    summary = {
        "bundle": {"name": "b", "target": "dev"},
        "resources": {"pipelines": {"shop": pipeline}},
        "targets": None,
    }
    source = read_source(written(tmp_path, summary))
    assert {"url", "modified_status"} <= {note.setting for note in source.notes}
    assert source.data["libraries"] == [{"glob": {"include": "transformations/**"}}]


def test_a_library_of_the_workspace_says_what_to_copy(tmp_path: Path):
    """An address of the workspace is no folder here, and the error says how its files come here."""
    folder = tmp_path / "pipelines" / "shop"  # others of this name lie beside the test's own folder
    folder.mkdir(parents=True)
    written(folder, {"name": "a", "libraries": [{"notebook": {"path": "/Repos/me/shop/orders"}}]})
    with pytest.raises(InvalidSpec, match="leads out") as caught:
        open_project(folder).source_files()
    assert "export-dir" in (caught.value.remedy or "")
    assert "transformations/orders" in (caught.value.remedy or "")
