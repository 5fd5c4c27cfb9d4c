"""A table that one pipeline fills is not written, filled anew or removed by another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline_case import PipelineCase

import replay_quarantine
from headwater.checkpoints.conditions import TableOwned
from headwater.commands.command_line import main
from headwater.graph.pipeline_project import open_project
from headwater.graph.update_plan import Selection
from headwater_spark.execution.update import UpdateRequest, resolve_only, run_update

SOURCE = """
@dp.table
def orders():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.materialized_view
def ids():
    return dp.read("orders").select("id")
"""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["orders", "ids"])
def test_another_pipeline_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """An update, a full refresh, a drop and a replay by a second pipeline end with TABLE_OWNED; rows and storage stay as they were."""
    case = PipelineCase(tmp_path, SOURCE)
    case.land([{"id": 1}, {"id": 2}])
    assert case.update().state == "COMPLETED"
    version = case.version(name)
    text = "from headwater import pipelines as dp\n\n@dp.table\ndef NAME():\n    return spark.readStream.format('rate').load()\n"
    second = tmp_path / "second"
    (second / "transformations").mkdir(parents=True)
    (second / "pipeline.yml").write_text("name: second\nschema: shop\n")
    (second / "transformations" / "main.py").write_text(text.replace("NAME", name))
    project = open_project(second, storage=case.storage, warehouse=case.warehouse, environment={})

    for selection in (Selection(), Selection(full_refresh_all=True)):
        with pytest.raises(TableOwned, match="belongs to the pipeline 'case'") as refused:
            run_update(project, UpdateRequest(selection))
        assert (refused.value.exit_code, refused.value.condition) == (3, "TABLE_OWNED")
        assert "main.py:3" in str(refused.value.where)
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    (second / "manifest.json").write_text(resolve_only(project).to_json())
    capsys.readouterr()
    for answered in (
        lambda: main(["drop", str(second), name, "--yes", "--json", *roots]),
        lambda: replay_quarantine.main([str(second), name, "--json", *roots]),
    ):
        assert answered() == 3
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"]["condition"] == "TABLE_OWNED"
    assert (case.rows(name, order="1"), case.version(name)) == ([(1,), (2,)], version)
    assert not (project.state_folder / "checkpoints").exists()

    case.land([{"id": 3}])
    assert case.update().state == "COMPLETED"
    assert case.rows(name, order="1") == [(1,), (2,), (3,)]
