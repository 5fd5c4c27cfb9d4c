"""The entries of a table's files come from its commits and its last checkpoint, the newest first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from headwater.delta_log.commits import commit_file, read_actions
from headwater.delta_log.file_entries import file_entries

KNOWN = ("path", "partitionValues", "size", "modificationTime", "stats", "deletionVector")


def added(table: Path, version: int) -> dict[str, Any]:
    """The entry that a version's commit has."""
    (entry,) = [action["add"] for action in read_actions(commit_file(table, version)) if "add" in action]
    return dict(entry)


def written(table: Path, versions: int) -> list[dict[str, Any]]:
    """A table of so many versions, with a file each; its entries."""
    for number in range(versions):
        write_deltalake(str(table), pa.table({"n": [number, number + 1]}), mode="append")
    return [added(table, number) for number in range(versions)]


def known(entry: dict[str, Any]) -> dict[str, Any]:
    """What an entry says, its statistics as values."""
    there = {name: entry[name] for name in KNOWN if entry.get(name) is not None}
    return {**there, "stats": json.loads(there["stats"])}


def test_entries_of_commits_and_checkpoints(tmp_path: Path):
    """A file's entry is what its commit says, from the commit or from the checkpoint behind which commits are gone."""
    table = tmp_path / "t"
    first = written(table, 3)
    DeltaTable(str(table)).create_checkpoint()
    write_deltalake(str(table), pa.table({"n": [9]}), mode="append")
    for number in range(3):
        commit_file(table, number).unlink()
    entries = [*first, added(table, 3)]
    paths = {entry["path"] for entry in entries}
    found = file_entries(table, 3, paths)
    assert set(found) == paths
    for entry in entries:
        assert known(found[entry["path"]]) == known(entry)
    assert set(file_entries(table, 3, {entries[1]["path"], "other"})) == {entries[1]["path"]}
    assert file_entries(table, 3, set()) == {}


def test_the_newest_entry_counts(tmp_path: Path):
    """A file that has come back with a deletion vector is the one with the vector; in an older version it has none."""
    table = tmp_path / "t"
    (entry,) = written(table, 1)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    again = [{"remove": {"path": entry["path"]}}, {"add": {**entry, "deletionVector": vector}}]
    commit_file(table, 1).write_text("".join(f"{json.dumps(action)}\n" for action in again))
    assert file_entries(table, 1, [entry["path"]])[entry["path"]]["deletionVector"] == vector
    assert "deletionVector" not in file_entries(table, 0, [entry["path"]])[entry["path"]]


def test_what_the_log_does_not_show(tmp_path: Path):
    """A commit that is gone, or a part of a checkpoint, leaves files out; the parts of a whole checkpoint count together."""
    table = tmp_path / "t"
    entries = written(table, 3)
    paths = [entry["path"] for entry in entries]
    commit_file(table, 1).rename(tmp_path / "kept")
    assert set(file_entries(table, 2, paths)) == {paths[2]}
    (tmp_path / "kept").rename(commit_file(table, 1))
    DeltaTable(str(table)).create_checkpoint()
    whole = table / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    rows = parquet.read_table(whole)
    whole.unlink()
    names = [whole.with_name(f"{2:020d}.checkpoint.{n:010d}.{2:010d}.parquet") for n in (1, 2)]
    parquet.write_table(rows.slice(0, 3), names[0])
    for number in range(3):
        commit_file(table, number).unlink()
    assert file_entries(table, 2, paths) == {}
    parquet.write_table(rows.slice(3), names[1])
    assert set(file_entries(table, 2, paths)) == set(paths)
