"""Commits of a Delta table, read from its log folder."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.delta_log.commits import (
    commit_file,
    commit_head,
    commit_info,
    commit_seconds,
    commit_versions,
    data_files,
    is_commit,
    newest_version,
    read_actions,
)


def commit(table: Path, version: int, *actions: object) -> Path:
    """A commit of these actions."""
    file = commit_file(table, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions))
    return file


def test_versions_are_those_of_commits_alone(tmp_path):
    """Checkpoints, checksums, half-written files and folders without a log give no version."""
    assert (commit_versions(tmp_path), newest_version(tmp_path)) == ([], None)
    for version in (3, 1, 12):
        commit(tmp_path, version)
    log = tmp_path / "_delta_log"
    for name in (f"{20:020d}.checkpoint.parquet", f"{21:020d}.crc", f".{22:020d}.json.tmp", "_last_checkpoint", "23.json"):  # fmt: skip
        (log / name).touch()
    assert (commit_versions(tmp_path), newest_version(tmp_path)) == ([1, 3, 12], 12)


def test_the_head_of_a_commit_has_what_its_writer_told(tmp_path):
    """Metadata and transactions are read; metadata in another writer's form is none."""
    info = {"commitInfo": {"operation": "MERGE", "userMetadata": '{"flow":"f"}'}}
    file = commit(tmp_path, 0, info, {"txn": {"appId": "a", "version": 7}}, {"add": {"path": "x"}})
    head = commit_head(file)
    assert (head.info["operation"], head.metadata, head.transactions) == ("MERGE", {"flow": "f"}, {"a": 7})
    for other in ("not json", '"a text"', None):
        file = commit(tmp_path, 1, {"commitInfo": {"userMetadata": other}})
        assert commit_head(file).metadata == {}
    assert commit_head(commit(tmp_path, 2)).metadata == {}


def test_files_that_only_moved_rows_are_left_out(tmp_path):
    """Of added and removed files those of an optimize don't count; a file without the mark does."""
    adds = [{"path": "a"}, {"path": "b", "dataChange": True}, {"path": "c", "dataChange": False}]
    file = commit(tmp_path, 0, *({"add": add} for add in adds), {"remove": {"path": "d"}})
    actions = read_actions(file)
    assert [changed["path"] for changed in data_files(actions, "add")] == ["a", "b"]
    assert [changed["path"] for changed in data_files(actions, "remove")] == ["d"]


def test_the_time_of_a_commit_is_the_tables_own_where_it_has_one(tmp_path):
    """The in-commit timestamp wins over the writer's clock, and that over the file's."""
    file = commit(tmp_path, 0, {"add": {"path": "a"}})
    assert commit_seconds(commit_info(read_actions(file)), file) == file.stat().st_mtime
    assert commit_seconds({"timestamp": 2000}, file) == 2
    assert commit_seconds({"timestamp": 2000, "inCommitTimestamp": 1500}, file) == 1.5


def test_names_of_commits():
    """Twenty digits and the ending: what Delta puts together of several commits is none."""
    assert is_commit(f"{7:020d}.json")
    for name in (
        f"{7:020d}.{9:020d}.compacted.json",
        f"{7:020d}.checkpoint.json",
        f".{7:020d}.json",
        "7.json",
        f"{7:020d}.jsonx",
    ):
        assert not is_commit(name), name
