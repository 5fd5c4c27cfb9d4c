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
