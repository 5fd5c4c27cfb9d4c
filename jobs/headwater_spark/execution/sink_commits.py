"""What the Delta sink committed, read from the table's log: Spark's progress does not say how many rows it wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SinkCommit:
    """The commit of one batch."""

    version: int
    rows: int
    timestamp: int


class SinkCommits:
    """The commits of one query, found by its transaction id (the query's id) and batch number."""

    # A batch that a killed driver committed lies at most this far back when the flow starts again.
    _LOOK_BACK = 100

    def __init__(self, table: Path, query_id: str) -> None:
        self._log = table / "_delta_log"
        self._query_id = query_id
        self._next = max(0, latest_version(table) - self._LOOK_BACK)
        self._found: dict[int, SinkCommit] = {}

    def find(self, batch_id: int) -> SinkCommit | None:
        """The commit of a batch, or None where it left none (a batch without rows may not)."""
        if batch_id not in self._found:
            self._read_on()
        return self._found.get(batch_id)

    def _read_on(self) -> None:
        while True:
            path = self._log / f"{self._next:020d}.json"
            if not path.exists():
                later = self._next < latest_version(self._log.parent)
                if not later:
                    return
                self._next += 1
                continue
            self._read(path)
            self._next += 1

    def _read(self, path: Path) -> None:
        rows, timestamp, batch_id = 0, 0, None
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                # Actions of files make up nearly all of a commit and are not looked into.
                if line.startswith('{"commitInfo"'):
                    info = json.loads(line)["commitInfo"]
                    rows = int(info.get("operationMetrics", {}).get("numOutputRows", 0))
                    timestamp = int(info.get("timestamp", 0))
                elif line.startswith('{"txn"'):
                    action = json.loads(line)["txn"]
                    if action["appId"] == self._query_id:
                        batch_id = int(action["version"])
        if batch_id is not None:
            self._found[batch_id] = SinkCommit(int(path.stem), rows, timestamp)


def latest_version(table: Path) -> int:
    """The newest version of a Delta table, -1 where there is none."""
    log = table / "_delta_log"
    if not log.is_dir():
        return -1
    return max(
        (int(p.name[:20]) for p in log.iterdir() if p.suffix == ".json" and p.name[:20].isdigit()), default=-1
    )
