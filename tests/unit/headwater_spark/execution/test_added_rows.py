"""Which files a version of a table brought, and whether it took rows away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.written_table import commit

from headwater.backfills.conditions import InvalidRange
from headwater_spark.execution import added_rows


def log_of(table: Path, *actions: dict[str, Any]) -> Path:
    """A table whose newest version has these actions."""
    version = commit(table)
    file = table / "_delta_log" / f"{version:020d}.json"
    file.write_text("\n".join(json.dumps(action) for action in actions) + "\n\n")
    return table


def test_files_that_a_version_brought(tmp_path: Path):
    """Those that change rows, by their decoded names; a compaction brings none and takes none."""
    add, same = {"path": "a%20b", "dataChange": True}, {"path": "c", "dataChange": False}
    table = log_of(tmp_path, {"add": add}, {"add": same}, {"remove": same}, {"add": {"path": "d"}})
    assert added_rows._data_files(table, 0) == (["a b", "d"], False)
    log_of(tmp_path, {"remove": {"path": "d"}})
    assert added_rows._data_files(table, 1) == ([], True)
    with pytest.raises(InvalidRange, match="version 2"):
        added_rows._data_files(table, 2)


def test_versions_that_took_rows_away(tmp_path: Path):
    """They are refused, unless the reader leaves such commits out."""
    log_of(tmp_path, {"remove": {"path": "d"}})
    with pytest.raises(InvalidRange, match="removed rows"):
        added_rows.added_rows(None, tmp_path, 0, 0)  # type: ignore[arg-type]


class Part(list[Any]):
    """Rows of some files of a version."""

    def unionByName(self, other: Part, *, allowMissingColumns: bool) -> Part:  # noqa: N802, N803 - Spark's names
        """Both, also where a later version has more columns."""
        assert allowMissingColumns
        return Part([*self, *other])


@pytest.mark.parametrize(
    ("first", "last", "skip", "read"),
    [
        # "b" was compacted away since: it is read in the version that brought it; the others as they are now.
        (0, 3, True, [("b", 1), ("a", 3), ("e", 3)]),
        (1, 1, False, [("b", 1)]),
        (0, 0, False, [("a", 0)]),
        (2, 2, True, []),
    ],
)
def test_where_each_file_is_read(
    monkeypatch: pytest.MonkeyPatch, first: int, last: int, skip: bool, read: list[tuple[str, int]]
):
    """In the newest version of the range where it is still there, else in its own; commits that are left out bring nothing."""
    brought = [(["a"], False), (["b"], False), (["d"], True), (["e"], False)]
    there = [{"a"}, {"a"}, {"a", "d"}, {"a", "d", "e"}]
    monkeypatch.setattr(added_rows, "_data_files", lambda _, version: brought[version])
    monkeypatch.setattr(added_rows, "_files_at", lambda _, version: there[version])
    monkeypatch.setattr(
        added_rows, "_part", lambda _session, _table, version, names: Part((name, version) for name in names)
    )
    rows: Any = added_rows.added_rows(None, Path("t"), first, last, skip_changes=skip)  # type: ignore[arg-type]
    assert list(rows) == read
