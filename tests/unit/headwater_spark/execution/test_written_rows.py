"""How many rows a refresh wrote, by its commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwater_spark.execution.written_rows import merged_groups, overwritten_rows


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """A commit of a table."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def file(rows: int | None) -> dict[str, Any]:
    """A file that comes."""
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return {"add": {"path": f"f{rows}", "size": 9, "dataChange": True, "stats": stats}}


def test_rows_of_an_overwrite(tmp_path: Path) -> None:
    """Those of the files of the newest commit; a file that does not say counts as none, and what went does not count."""
    commit(tmp_path, 0, {"commitInfo": {}}, file(100))
    commit(
        tmp_path,
        1,
        {"commitInfo": {}},
        file(3),
        file(4),
        file(None),
        {"remove": {"path": "f100", "dataChange": True}},
    )
    assert overwritten_rows(tmp_path).accepted == 7


def test_groups_of_a_merge(tmp_path: Path) -> None:
    """Those that came and those that were changed."""
    metrics = {"numTargetRowsInserted": "2", "numTargetRowsUpdated": "5", "numTargetRowsCopied": "90"}
    commit(tmp_path, 0, {"commitInfo": {"operationMetrics": metrics}})
    assert merged_groups(tmp_path).accepted == 7
    commit(tmp_path, 1, {"commitInfo": {}})
    assert merged_groups(tmp_path).accepted == 0
