"""Backfills read commits whose statistics quote rows with characters that Python takes for ends of lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.delta_log.commits import commit_file
from headwater_spark.execution import added_rows, late_rows

STATS = json.dumps({"numRecords": 1, "maxValues": {"note": "\u2028 \u2029 \u0085 hi"}}, ensure_ascii=False)


def commit(table: Path, version: int, flow: str) -> None:
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"operation": "WRITE", "readVersion": version - 1, "note": "\u0085"}},
        {"txn": {"appId": flow, "version": version}},
        {"add": {"path": f"a%20{version}.parquet", "size": 1, "stats": STATS}},
    ]
    file = commit_file(table, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "".join(f"{json.dumps(action, ensure_ascii=False)}\n".replace('": ', '":') for action in actions)
    )


def test_the_files_of_such_a_commit_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rows of a version are those of the files that it added."""
    commit(tmp_path, 1, "live")
    monkeypatch.setattr(added_rows, "_part", lambda _session, _table, version, names: (version, names))
    assert added_rows.rows_of_commit(None, tmp_path, 1) == (1, ["a 1.parquet"])  # type: ignore[arg-type, comparison-overlap]


def test_late_rows_of_such_commits_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """After a kill, each commit of the live stream that the replacement did not see is written again, once."""
    for version in range(1, 5):
        commit(tmp_path, version, "live")
    commit(tmp_path, 5, "backfill")
    written: list[str] = []

    class Append:
        def __init__(self, table: Path) -> None:
            assert table == tmp_path

        def write(self, _frame: object, batch: Any) -> None:
            written.append(batch.application)

    class Rows:
        def where(self, condition: str) -> str:
            return condition

    monkeypatch.setattr(late_rows, "DeltaAppend", Append)
    monkeypatch.setattr(late_rows, "has_transaction", lambda _table, name, _batch: name.endswith("late-3"))
    monkeypatch.setattr(late_rows, "rows_of_commit", lambda *_: Rows())
    pending = PendingReplacement("orders", "backfill", "true", "{}", {"live": 2})
    late_rows._put_back(None, tmp_path, pending, 1, 5)  # type: ignore[arg-type]
    assert written == ["backfill-late-4"]
