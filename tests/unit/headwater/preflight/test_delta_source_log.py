"""What a stream has yet to read of a Delta table's log, by its position alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.preflight.started import started
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.source import SourceKind
from headwater.delta_log.commits import commit_file
from headwater.preflight.delta_source_checks import _changed_or_missing, _feed_at, _refused
from headwater.preflight.delta_source_log import CommitDamaged, Unread, log_is_cut
from headwater.preflight.flow_start import StreamSource


def unread(table: Path, version: int, index: int = -1, *, first_read: bool = False, **options: str) -> Unread:
    """The position of a stream in a table."""
    offset = {"reservoirVersion": version, "index": index, "isStartingVersion": first_read}
    return Unread(StreamSource(SourceKind.DELTA, "t", table=table, options=options), table, offset)


def versions(table: Path, first: int, last: int, checkpoint: int | None = None) -> Path:
    """A log of which only these versions are left, and a checkpoint."""
    for _ in range(last + 1):
        commit(table)
    for version in range(first):
        commit_file(table, version).unlink()
    if checkpoint is not None:
        (table / "_delta_log" / f"{checkpoint:020d}.checkpoint.parquet").touch()
    return table


def add_files(table: Path, version: int, *files: str, removed: tuple[str, ...] = ()) -> None:
    """Files that a commit adds and removes."""
    file = commit_file(table, version)
    adds = [{"add": {"path": path, "dataChange": True}} for path in files]
    removes = [{"remove": {"path": path, "dataChange": True}} for path in removed]
    file.write_text(file.read_text() + "".join(json.dumps(action) + "\n" for action in [*adds, *removes]))


@pytest.mark.parametrize(
    ("first", "checkpoint", "position", "first_read", "cut"),
    [
        (0, None, 2, False, False),
        (2, None, 2, False, False),
        (3, None, 2, False, True),
        (0, None, 2, True, False),
        (2, 1, 2, True, False),
        (3, 2, 2, True, False),
        (3, 1, 2, True, True),  # version 2 is in neither
        (3, 3, 2, True, True),
        (2, None, 2, True, True),
    ],
)
def test_what_has_left_the_log(
    tmp_path: Path, first: int, checkpoint: int | None, position: int, first_read: bool, cut: bool
):
    """A stream needs its version and all later ones; a first read needs what its version is put together of as well."""
    table = versions(tmp_path / "t", first, 4, checkpoint)
    found = [*log_is_cut(started(tmp_path), unread(table, position, first_read=first_read))]
    assert [damage.condition for damage in found] == (["SOURCE_LOG_CUT"] if cut else [])


@pytest.mark.parametrize(("first_read", "ahead"), [(False, [2, 3]), (True, [3])])
def test_what_is_read_next(tmp_path: Path, first_read: bool, ahead: list[int]):
    """The version of the position itself, unless that is the snapshot that is being read."""
    one = unread(versions(tmp_path / "t", 0, 3), 2, first_read=first_read)
    assert [version for version, _ in one.commits_ahead()] == ahead


@pytest.mark.parametrize(("index", "skip"), [(-1, 0), (0, 1), (4, 5), (-100, 0)])
def test_files_that_were_read(tmp_path: Path, index: int, skip: int):
    """The position names the last file of its version that was read, by its place."""
    assert unread(tmp_path, 2, index).skip == skip


@pytest.mark.parametrize(("content", "fault"), [("", "empty"), ("\n", ""), ('{"add": ', "")])
def test_commits_that_are_damaged(tmp_path: Path, content: str, fault: str):
    """One that says nothing is as damaged as one that is cut short: without it, files of the table would never be read."""
    table = versions(tmp_path / "t", 0, 2)
    commit_file(table, 1).write_text(content)
    one = unread(table, 0)
    assert one.actions(2)
    with pytest.raises(CommitDamaged) as caught:
        one.actions(1)
    assert caught.value.args[0] == 1
    assert fault in caught.value.args[1]


def test_files_with_unread_rows_are_looked_for(tmp_path: Path):
    """Of the position's own version only those that were not read, of the later ones all."""
    table = versions(tmp_path / "t", 0, 2)
    add_files(table, 1, "read", "unread")
    add_files(table, 2, "later", "there")
    (table / "there").touch()
    (damage,) = _changed_or_missing(started(tmp_path), unread(table, 1, 0))
    assert (damage.condition, damage.evidence) == (
        "SOURCE_FILES_GONE",
        ("version 1: unread", "version 2: later"),
    )


@pytest.mark.parametrize(
    ("options", "deletes", "changes"),
    [
        ({}, True, True),
        ({"ignoreDeletes": "true"}, False, True),
        ({"ignoreChanges": "true"}, False, False),
    ],
)
def test_what_a_stream_refuses(tmp_path: Path, options: dict[str, Any], deletes: bool, changes: bool):
    """Rows that went, or were written anew: each is passed over only by the option that says so."""
    source = unread(tmp_path, 0, **options).source
    assert (_refused(source, adds=False), _refused(source, adds=True)) == (deletes, changes)


def test_a_feed_that_is_not_known(tmp_path: Path):
    """Where the commit that set it has left the log, it is not said to be off; else the newest setting counts."""
    assert _feed_at(unread(versions(tmp_path / "cut", 2, 3), 3), 3)
    assert not _feed_at(unread(versions(tmp_path / "off", 0, 1), 1), 1)
