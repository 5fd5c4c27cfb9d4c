"""A commit that ends with a line is damaged where it has fewer files than it says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from tests.unit.headwater_spark.written_table import commit

from headwater.delta_log.commits import commit_file
from headwater.delta_log.damaged_commits import commit_fault, damaged_commit

ROWS = pa.table({"id": list(range(10)), "part": [n % 2 for n in range(10)]})


def merge(table: DeltaTable) -> None:
    done = table.merge(ROWS, "t.id = s.id", source_alias="s", target_alias="t")
    done.when_matched_update({"part": "s.part + 1"}).when_not_matched_insert_all().execute()


OPERATIONS: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: write_deltalake(table, ROWS, mode="append", partition_by=["part"]),
    "overwrite": lambda table: write_deltalake(table, ROWS, mode="overwrite", partition_by=["part"]),
    "update": lambda table: table.update({"part": "part + 2"}, predicate="id = 3"),
    "delete": lambda table: table.delete("id = 3"),
    "delete all": lambda table: table.delete(),
    "merge": merge,
    "optimize": lambda table: table.optimize.compact(),
    "restore": lambda table: table.restore(0),
}


@pytest.mark.parametrize("feed", ["false", "true"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_whole_commits_of_delta_rs(tmp_path: Path, operation: str, feed: str):
    """Whatever made it, with a change feed or without: a whole commit has no fault."""
    configuration = {"delta.enableChangeDataFeed": feed}
    for _ in range(2):
        write_deltalake(
            str(tmp_path), ROWS, mode="append", partition_by=["part"], configuration=configuration
        )
    table = DeltaTable(str(tmp_path))
    OPERATIONS[operation](table)
    table.update_incremental()
    assert table.version() == 2
    assert commit_fault(commit_file(tmp_path, 2)) is None


def lines(metrics: Mapping[str, object], *kinds: str) -> list[dict[str, Any]]:
    return [
        {"commitInfo": {"operationMetrics": metrics}},
        *({kind: {"path": f"{number}.parquet"}} for number, kind in enumerate(kinds)),
    ]


@pytest.mark.parametrize(
    ("metrics", "kinds", "fault"),
    [
        ({"numAddedFiles": "2"}, ["add", "add"], None),
        ({"numAddedFiles": "2"}, ["add", "remove"], "it says that it adds 2 files, and only 1 are in it"),
        ({"numAddedFiles": "1"}, ["txn"], "it says that it adds 1 file, and none is in it"),
        ({"num_added_files": 1}, [], "it says that it adds 1 file, and none is in it"),
        ({"numTargetFilesAdded": "1"}, ["cdc"], None),
        ({"numTargetFilesRemoved": "2"}, ["remove", "add"], "it says that it removes 2 files, and only 1 are in it"),
        ({"numAddedFiles": "1"}, ["add", "add"], None),
        ({"numFiles": "3", "numOutputRows": "5"}, ["add"], None),
        ({"numFiles": "3", "numOutputRows": "5"}, [], "it says that it writes 5 rows, and no file is in it"),
        ({"numFiles": "1", "numOutputRows": "0"}, [], None),
        ({"numAddedFiles": "many"}, [], None),
        ("none", [], None),
    ],
)  # fmt: skip
def test_fewer_files_than_stated(tmp_path: Path, metrics: Any, kinds: list[str], fault: str | None):
    """Fewer are damage; more, a metric that is no number, and a file without a row, which Delta leaves out, are not."""
    file = tmp_path / f"{1:020d}.json"
    file.write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines(metrics, *kinds))
    )
    assert commit_fault(file) == fault


def added(number: int, stats: str | None) -> dict[str, Any]:
    """The line of a file; a value of its partition looks like statistics."""
    add = {"path": f"{number}.parquet", "partitionValues": {"p": '"stats":"{\\"numRecords\\":0'}}
    return {"add": {**add, **({} if stats is None else {"stats": stats})}}


FIVE, THREE = '{"numRecords":5,"minValues":{}}', '{"numRecords":3}'


@pytest.mark.parametrize(
    ("operation", "files", "more", "whole"),
    [
        ("WRITE", [FIVE, THREE], [], True),
        ("WRITE", [FIVE], [], False),
        ("WRITE", [FIVE, None], [], True),
        ("WRITE", [FIVE, "{}"], [], True),
        ("WRITE", [FIVE], [{"cdc": {"path": "c.parquet"}}], True),
        ("WRITE", [FIVE, FIVE], [{"remove": {"path": "r.parquet"}}], True),
        ("CREATE TABLE AS SELECT", [FIVE], [], True),
    ],
)
def test_fewer_rows_than_stated(
    tmp_path: Path, operation: str, files: list[str | None], more: list[dict[str, Any]], whole: bool
):
    """A plain write says how many rows it has, and so do its files: fewer are damage, where all files say it and no other rows were counted."""
    file = tmp_path / f"{1:020d}.json"
    metrics = {"numFiles": "2", "numOutputRows": "8"}
    info = {"commitInfo": {"operation": operation, "operationMetrics": metrics}}
    content = [info, *more, *(added(number, stats) for number, stats in enumerate(files))]
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in content))
    fault = None if whole else "it says that it writes 8 rows, and the files in it have 5"
    assert commit_fault(file) == fault


def test_an_empty_commit_between_others(tmp_path: Path):
    """It is read as one without rows, also where later ones are whole; one that a checkpoint has is not read any more."""
    for _ in range(4):
        commit(tmp_path)
    commit_file(tmp_path, 1).write_text("")
    assert damaged_commit(tmp_path) == (commit_file(tmp_path, 1), "the file is empty")
    assert damaged_commit(tmp_path, since=2) is None
    (tmp_path / "_delta_log" / f"{2:020d}.checkpoint.parquet").write_text("PAR1")
    assert damaged_commit(tmp_path) is None


def test_a_checksum_without_its_commit(tmp_path: Path):
    """Where somebody removed the newest commit alone, delta-rs opens the table no more: the commit is named, and what to remove with it."""
    for version in range(3):
        write_deltalake(str(tmp_path), pa.table({"id": [version]}), mode="append")
    for version in (1, 2):
        commit_file(tmp_path, version).with_suffix(".crc").write_text("{}")
    assert damaged_commit(tmp_path) is None
    commit_file(tmp_path, 2).unlink()
    assert damaged_commit(tmp_path) == (
        commit_file(tmp_path, 2), f"it is gone, and its checksum {2:020d}.crc is there",
    )  # fmt: skip
    with pytest.raises(DeltaError):
        DeltaTable(str(tmp_path))
    commit_file(tmp_path, 2).with_suffix(".crc").unlink()
    assert damaged_commit(tmp_path) is None


def test_a_checksum_of_the_only_commit(tmp_path: Path):
    """After the first update a table has one commit: with its checksum alone there is a table, and nobody can say which."""
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    file = commit_file(tmp_path, 0)
    file.with_suffix(".crc").write_text("{}")
    file.unlink()
    assert damaged_commit(tmp_path, readable=False) == (
        file, f"it is gone, and its checksum {0:020d}.crc is there",
    )  # fmt: skip
    file.with_suffix(".crc").unlink()
    assert damaged_commit(tmp_path, readable=False) is None


@pytest.mark.parametrize("damaged", [0, 1, 2])
@pytest.mark.parametrize("readable", [True, False])
def test_which_commits_are_looked_at(tmp_path: Path, damaged: int, readable: bool):
    """The newest alone of a table that can be opened; else all, and what is named is the first that is damaged."""
    for _ in range(3):
        commit(tmp_path)
    for version in range(damaged, 3):
        file = commit_file(tmp_path, version)
        file.write_text(file.read_text().rstrip("\n")[:-3])
    found = damaged_commit(tmp_path, readable=readable)
    assert found is not None
    assert found[0].name == commit_file(tmp_path, 2 if readable else damaged).name
