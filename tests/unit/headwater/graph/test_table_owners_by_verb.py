"""Each verb that would write to a table's files, or make the table look like this pipeline's, asks whose it is first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from tests.unit.headwater.metrics.conftest import Pipeline, done, pipeline
from tests.unit.headwater.quarantine.test_table import TYPES, entry

from headwater.commands.command_line import main
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.quarantine import columns as c

__all__ = ["done", "pipeline"]


def files(project: PipelineProject) -> dict[Path, bytes]:
    """Everything below the warehouse and the storage."""
    roots = (project.warehouse, project.storage)
    return {path: path.read_bytes() for root in roots for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def second(done: Pipeline) -> PipelineProject:
    """Another pipeline that declares the tables of the first, which has held rows of one."""
    project = done.project
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps({"pipeline": project.pipeline_id})}
    )
    for name in ("bronze", "silver"):
        table = pa.table({"id": pa.array([3], pa.int64())})
        write_deltalake(str(done.table(name)), table, mode="append", commit_properties=properties)
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in c.MANAGED])
    rows = pa.Table.from_pylist([entry(1, "whole", flow="silver")], schema=schema)
    write_deltalake(str(done.table("silver_quarantine")), rows)
    folder = project.folder.with_name("second")
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: second\nschema: mart\n")
    datasets = [
        {**entry, "name": f"shop.{entry['name']}"}
        for entry in json.loads(done.manifest.to_json())["datasets"]
    ]
    (folder / "manifest.json").write_text(json.dumps(_renamed(json.loads(done.manifest.to_json()), datasets)))
    return open_project(folder, storage=project.storage, warehouse=project.warehouse, environment={})


def _renamed(manifest: dict[str, Any], datasets: list[dict[str, Any]]) -> dict[str, Any]:
    flows = [{**flow, "target": f"shop.{flow['target']}"} for flow in manifest["flows"]]
    return {**manifest, "pipeline_id": "second", "datasets": datasets, "flows": flows}


def call(project: PipelineProject, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code of a command line, and the JSON of its last line; PIPELINE stands for the folder."""
    given = [str(project.folder) if word == "PIPELINE" else word for word in words]
    roots = [f"--storage={project.storage}", f"--warehouse={project.warehouse}", "--json"]
    code = main([*given, *roots])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    "words",
    [
        ("maintenance", "PIPELINE"),
        ("maintenance", "PIPELINE", "--yes"),
        ("maintenance", "PIPELINE", "--tables=shop.silver", "--only=vacuum", "--retention=0 s", "--yes"),
        ("repair", "PIPELINE", "silver", "--action=new-epoch", "--from-start", "--yes"),
        ("repair", "PIPELINE", "silver", "--action=full-refresh", "--yes"),
        ("quarantine", "discard", "PIPELINE", "shop.silver", "--all", "--reason=old"),
        ("drop", "PIPELINE", "shop.silver", "--yes"),
    ],
    ids=" ".join,
)
def test_a_table_of_another_pipeline_is_left_alone(
    second: PipelineProject, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """TABLE_OWNED, exit code 3, and not a byte has changed; its own pipeline can do all of it."""
    before = files(second)
    code, answer = call(second, capsys, *words)
    assert (code, answer["error"]["condition"]) == (3, "TABLE_OWNED")
    assert files(second) == before


def test_tables_of_its_own_are_kept_up_beside(
    second: PipelineProject, done: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that no pipeline claims can be named; the pipeline that fills the others may do what the second may not."""
    assert call(second, capsys, "maintenance", "PIPELINE", "--tables=shop.gold", "--yes")[0] == 0
    assert call(done.project, capsys, "maintenance", "PIPELINE", "--yes")[0] == 0
    discard = ("quarantine", "discard", "PIPELINE", "silver", "--all", "--reason=old")
    assert call(done.project, capsys, *discard)[0] == 0


def test_the_remedy_can_be_typed(
    second: PipelineProject, done: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the table in full, which the owner's move understands, whatever the owner's own schema is."""
    _, answer = call(second, capsys, "maintenance", "PIPELINE", "--tables=shop.silver")
    assert (
        "headwater move OWNER_DIR shop.silver --to second (OWNER_DIR: the folder of 'orders')"
        in (answer["error"]["remedy"])
    )
    code, moved = call(
        done.project, capsys, "move", "PIPELINE", "shop.silver", "--to", str(second.folder), "--yes"
    )
    assert (code, moved["to"]) == (0, {"pipeline": "second", "dataset": "shop.silver"})
    assert call(second, capsys, "maintenance", "PIPELINE", "--tables=shop.silver", "--yes")[0] == 0
