"""Whether a file is written again or rows of it are only marked as deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater_spark.auto_cdc.on_driver.marking import is_marked, split_files
from headwater_spark.delta_writes.file_rewrite import DataFile, Marks

COUNTED = {"stats": json.dumps({"numRecords": 100})}


def file(rows: int, deleted: int = 0, entry: Any = COUNTED, path: str = "f") -> DataFile:
    return DataFile(path, 1, 1, rows, deleted, entry)


@pytest.mark.parametrize(
    ("of", "changed", "changes", "marked"),
    [
        (file(100), 1, 1, True),
        (file(100), 25, 25, True),
        (file(100), 26, 26, False),  # much of it would be marked
        (file(80, deleted=20), 5, 5, True),
        (file(80, deleted=20), 6, 6, False),  # with what was marked before
        (file(100), 1, 99, True),
        (file(100), 1, 100, False),  # small beside the batch
        (file(100), 100, 1000, True),  # no row stays: it goes
        (file(5, deleted=95), 5, 5, True),
        (file(100, entry=None), 100, 100, True),
        (file(100, entry=None), 1, 1, False),  # a vector needs a number of rows in the file's entry
        (file(100, entry={"stats": None}), 1, 1, False),
        (file(100, entry={"stats": "{}"}), 1, 1, False),
    ],
)
def test_files_are_marked(of: DataFile, changed: int, changes: int, marked: bool):
    """Large files of which few rows change are marked, and those of which no row stays; all others are written again."""
    assert is_marked(of, changed, changes) == marked


def test_files_are_split():
    """Each file with a row to change is either written again or marked, with the numbers of its rows."""
    large, small, other = file(100, path="a"), file(3, path="b"), file(100, path="c")
    again, marks = split_files({"a": large, "b": small, "c": other}, {"a": [7, 3], "b": [0]}, 3)
    assert again == [small]
    assert marks == [Marks(large, [7, 3])]
    assert not marks[0].empties
    assert Marks(small, [0, 1, 2]).empties
