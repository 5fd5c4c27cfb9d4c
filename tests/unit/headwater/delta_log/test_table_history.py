"""A table's log tells whether there is a table, and who wrote to it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from headwater.delta_log.table_history import epochs_written, table_exists


def commit(table: Path, metadata: str | None) -> None:
    """Append a row, with or without user metadata."""
    properties = (
        CommitProperties(custom_metadata={"userMetadata": metadata}) if metadata is not None else None
    )
    write_deltalake(str(table), pa.table({"id": [1]}), mode="append", commit_properties=properties)


def by(pipeline: str, flow: str, epoch: object) -> str:
    """The metadata of a flow's commit."""
    return json.dumps({"pipeline": pipeline, "flow": flow, "epoch": epoch})


def test_a_table_is_there_with_its_first_commit(tmp_path: Path):
    """A folder, and a folder with an empty log, are no tables."""
    table = tmp_path / "t"
    assert not table_exists(table)
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / ".00000000000000000000.json.tmp").touch()
    assert not table_exists(table)
    commit(table, None)
    assert table_exists(table)


@pytest.mark.parametrize("foreign", [None, "by hand", "[1]", "{}", by("p", "f", "x")])
def test_epochs_of_one_flow(tmp_path: Path, foreign: str | None):
    """Only commits of this pipeline and flow count; those of others may say anything."""
    table = tmp_path / "t"
    assert epochs_written(table, "p", "f") == []
    for metadata in (
        by("p", "f", 2),
        foreign,
        by("p", "f", 0),
        by("q", "f", 5),
        by("p", "g", 6),
        by("p", "f", 2),
    ):
        commit(table, metadata)
    assert epochs_written(table, "p", "f") == [0, 2]
