"""A commit is read once in a process, and read again when its file is another one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headwater.delta_log.versions import AddedFile, last_change, read_commit


def write(table: Path, stats: str | None, *, files: int = 1) -> Path:
    file = table / "_delta_log" / f"{0:020}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    add = {"add": {"path": "a", "size": 3, "dataChange": True, "stats": stats}}
    file.write_text(
        "".join(f"{json.dumps(line)}\n" for line in [{"commitInfo": {"timestamp": 5000}}, *[add] * files])
    )
    return file


@pytest.mark.parametrize(
    ("stats", "records"),
    [
        ('{"numRecords":7}', 7),
        ('{"numRecords":12,"minValues":{"numRecords":3}}', 12),
        ('{"minValues":{"numRecords":3},"numRecords":8}', 8),
        ('{"numRecords": 9, "tightBounds": false}', 9),
        ('{"minValues":{}}', None),
        ("", None),
        (None, None),
    ],
)
def test_rows_of_a_file(tmp_path, stats, records):
    """Its number of rows is what the statistics say, wherever they say it."""
    write(tmp_path, stats)
    commit = read_commit(tmp_path, 0)
    assert commit is not None
    assert commit.added == (AddedFile(3, records),)
    assert commit.timestamp == 5


@pytest.mark.parametrize("files", [1, 300])
def test_another_file_is_another_commit(tmp_path, files):
    """Of the same size, and with few files in it or many: a table that was made anew has no commit of the old one."""
    write(tmp_path, '{"numRecords":7}', files=files)
    assert read_commit(tmp_path, 0) == read_commit(tmp_path, 0)
    (tmp_path / "_delta_log").rename(tmp_path / "old")
    file = write(tmp_path, '{"numRecords":8}', files=files)
    commit = read_commit(tmp_path, 0)
    assert commit is not None
    assert commit.added == (AddedFile(3, 8),) * files
    before = file.stat()
    file.write_text(file.read_text().replace("8", "9"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    commit = read_commit(tmp_path, 0)
    assert commit is not None
    assert commit.added == (AddedFile(3, 9),) * files
    file.unlink()
    assert read_commit(tmp_path, 0) is None


def test_a_table_that_got_its_rows_with_its_first_version(tmp_path):
    """That one is the last change, however much was said of the table since; a log without its beginning has none."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, action in enumerate(
        ({"add": {"path": "a", "size": 1}}, {"commitInfo": {}}, {"commitInfo": {}})
    ):
        (log / f"{version:020d}.json").write_text(json.dumps(action))
    change = last_change(tmp_path, 2)
    assert change is not None
    assert change.version == 0
    (log / f"{0:020d}.json").unlink()
    assert last_change(tmp_path, 2) is None
