"""A table that was dropped is nobody's: who fills it next has it, also where the sources here still declare it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import CommitProperties
from tests.unit.headwater.doctor.test_dropping import call

from headwater.checkpoints.conditions import TableOwned
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.definitions.dataset import DatasetKind
from headwater.graph.manifest import FILE_NAME, DatasetEntry, FlowEntry, read_manifest
from headwater.graph.pipeline_project import open_project
from headwater.graph.stored_manifest import with_dropped
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.moves.move_request import Wish
from headwater.moves.moving import move_table
from headwater.moves.relocation_plan import plan_relocation
from headwater.storage.delta_tables import append


@pytest.fixture
def other(done, tmp_path):
    """Another pipeline, with a view ``shop.gold`` of its own."""
    folder = tmp_path / "other"
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: other\nschema: mart\n")
    project = open_project(folder, storage=done.project.storage, warehouse=done.project.warehouse)
    project.state_folder.mkdir(parents=True)
    view = DatasetEntry(name="shop.gold", kind=DatasetKind.MATERIALIZED_VIEW, location="shop/gold")
    changes = {"pipeline_id": "other", "schema_name": "mart", "datasets": (view,)}
    flows = (FlowEntry(name="shop.gold", target="shop.gold", streaming=False),)
    manifest = done.manifest.model_copy(update={**changes, "flows": flows})
    (project.state_folder / FILE_NAME).write_text(manifest.to_json())
    flow_checkpoint(project.state_folder, "shop.gold", "shop.gold").write_state(FlowState(completed=True))
    return project


def test_another_pipeline_fills_it(done, other, capsys, tmp_path):
    """TABLE_OWNED also says: drop it there. Then no update writes beside the new owner, no relocation takes its rows along, and a move
    brings the table back.
    """
    assert call(done, capsys, "gold", "--yes")[0] == 0
    refuse_foreign_tables(done.project, done.manifest)
    theirs = CommitProperties(custom_metadata={"userMetadata": json.dumps({"pipeline": "other"})})
    append(done.table("gold"), pa.table({"id": [7]}), mode="append", commit_properties=theirs)
    with pytest.raises(TableOwned, match="belongs to the pipeline 'other'"):
        refuse_foreign_tables(done.project, done.manifest)
    there = open_project(done.project.folder, storage=tmp_path / "to", warehouse=tmp_path / "rows")
    with pytest.raises(TableOwned):
        plan_relocation(done.project, there, "headwater relocate")
    move_table(Wish(other, done.project, "shop.gold", "shop.gold", "headwater move"))
    refuse_foreign_tables(done.project, done.manifest)
    manifest = read_manifest(done.project.state_folder / FILE_NAME)
    assert manifest is not None
    assert sorted(entry.name for entry in manifest.datasets) == ["bronze", "gold", "silver"]
    assert manifest.dropped == ()


def test_an_update_of_other_tables(done, capsys):
    """It stores the graph as the sources declare it: what was dropped is nobody's until it is filled again, or declared no more."""
    assert call(done, capsys, "gold", "--yes")[0] == 0
    before = read_manifest(done.project.state_folder / FILE_NAME)
    assert with_dropped(done.manifest, before, done.project).dropped == ("gold",)
    less = done.manifest.model_copy(update={"datasets": done.manifest.datasets[:1]})
    assert with_dropped(less, before, done.project).dropped == ()
    sink = done.manifest.datasets[0].model_copy(
        update={"name": "gold", "kind": DatasetKind.SINK, "location": None}
    )
    sinks = done.manifest.model_copy(update={"datasets": (sink,)})
    assert with_dropped(sinks, before, done.project).dropped == ()
    append(done.table("gold"), pa.table({"id": [7]}), mode="append")
    assert with_dropped(done.manifest, before, done.project) == done.manifest
    assert with_dropped(done.manifest, None, done.project) == done.manifest


def test_a_table_takes_its_name(done, capsys):
    """A rename to the name of a table that was dropped leaves one entry of that name."""
    assert call(done, capsys, "silver", "gold", "--yes")[0] == 0
    move_table(Wish(done.project, done.project, "bronze", "silver", "headwater rename"))
    manifest = read_manifest(done.project.state_folder / FILE_NAME)
    assert manifest is not None
    assert sorted(entry.name for entry in manifest.datasets) == ["gold", "silver"]
    assert [flow.name for flow in manifest.flows] == ["silver", "gold"]
    assert manifest.dropped == ("gold",)
