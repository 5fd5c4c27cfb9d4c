"""Whose a table is: as its own log and this pipeline's storage say."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from headwater.checkpoints.conditions import TableOwned
from headwater.definitions.dataset import DatasetKind
from headwater.delta_log.table_history import last_pipeline
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject, open_project
from headwater.graph.table_owners import refuse_foreign_tables


@pytest.fixture
def project(tmp_path: Path) -> PipelineProject:
    """The pipeline ``mine``."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "pipeline.yml").write_text("name: mine\nschema: shop\n")
    return open_project(
        folder, storage=tmp_path / "storage", warehouse=tmp_path / "warehouse", environment={}
    )


def commit(project: PipelineProject, user_metadata: str | None) -> Path:
    """One more commit to the table ``shop.orders``, with user metadata."""
    table = project.warehouse / "shop" / "orders"
    metadata = (
        None if user_metadata is None else CommitProperties(custom_metadata={"userMetadata": user_metadata})
    )
    write_deltalake(str(table), pa.table({"id": [1]}), mode="append", commit_properties=metadata)
    return table


def declared() -> Manifest:
    """A graph with the table."""
    entry = DatasetEntry(name="orders", kind=DatasetKind.STREAMING_TABLE, location="shop/orders")
    return Manifest(
        headwater_version="0",
        pipeline_id="mine",
        pipeline_name="mine",
        schema_name="shop",
        source_hash="-",
        datasets=(entry,),
        flows=(),
    )


def test_the_newest_commit_that_says_so_names_the_pipeline(project: PipelineProject) -> None:
    """Commits of maintenance and of other writers name none."""
    assert last_pipeline(commit(project, None)) is None
    table = commit(project, json.dumps({"pipeline": "theirs", "flow": "orders"}))
    commit(project, "a note")
    assert last_pipeline(commit(project, None)) == "theirs"
    commit(project, json.dumps({"pipeline": "mine"}))
    assert last_pipeline(table) == "mine"


def test_a_table_of_another_pipeline_is_refused(project: PipelineProject) -> None:
    """Nothing is refused before the table exists, where no pipeline or this one wrote it, and where the command is about other tables."""
    refuse_foreign_tables(project, declared())
    for user_metadata in (None, json.dumps({"pipeline": "mine"})):
        commit(project, user_metadata)
        refuse_foreign_tables(project, declared())
    commit(project, json.dumps({"pipeline": "theirs"}))
    refuse_foreign_tables(project, declared(), ["customers"])
    with pytest.raises(TableOwned, match="belongs to the pipeline 'theirs'"):
        refuse_foreign_tables(project, declared())


def test_a_table_that_was_moved_here_is_ours(project: PipelineProject) -> None:
    """Its log still has the old pipeline's name: the last manifest knows it, or its checkpoint lies here."""
    commit(project, json.dumps({"pipeline": "theirs"}))
    checkpoint = project.state_folder / "checkpoints" / "orders"
    checkpoint.mkdir(parents=True)
    (checkpoint / "orders").mkdir()
    refuse_foreign_tables(project, declared())
    (checkpoint / "orders").rmdir()
    (project.state_folder / "manifest.json").write_text(declared().to_json())
    refuse_foreign_tables(project, declared())


def test_a_table_that_lies_elsewhere_now(project: PipelineProject) -> None:
    """Its name in the last manifest says nothing of another folder: whose table is there, its own log says."""
    commit(project, json.dumps({"pipeline": "theirs"}))
    before = declared()
    moved = before.model_copy(update={"datasets": tuple(one.model_copy(update={"location": "shop/elsewhere"}) for one in before.datasets)})  # fmt: skip
    project.state_folder.mkdir(parents=True, exist_ok=True)
    (project.state_folder / "manifest.json").write_text(moved.to_json())
    with pytest.raises(TableOwned):
        refuse_foreign_tables(project, declared())
