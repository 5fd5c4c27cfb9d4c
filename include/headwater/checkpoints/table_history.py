"""What a table's own log says: whether there is a table, and which flows wrote to it. It outlives a lost checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def table_exists(table: Path) -> bool:
    """Whether a Delta table is there. A folder for its log alone is none: a driver killed in its first commit leaves it."""
    log = table / "_delta_log"
    return log.is_dir() and any(path.name[:20].isdigit() for path in log.iterdir())


def missing_versions(table: Path) -> list[int]:
    """Versions that are missing between others in a table's log; what retention takes at its beginning is no hole."""
    names = [path.name for path in (table / "_delta_log").iterdir()]
    there = {int(n[:20]) for n in names if n[:20].isdigit() and n.endswith(".json") and len(n) == 25}
    return sorted(set(range(min(there), max(there))) - there) if there else []


@dataclass(frozen=True)
class FlowCommit:
    """A commit that a flow made. ``transaction``: id and batch; ``rows``: what it wrote, where the log says so.

    ``end_offsets``: where the batch ended at each source; only commits of batches that did not go through the
    Delta sink itself tell it.
    """

    version: int
    epoch: int
    transaction: tuple[str, int] | None
    rows: int | None
    end_offsets: tuple[Any, ...] | None = None


def table_id(table: Path) -> str | None:
    """The id that Delta gave the table when it was created; None where there is none, or it can't be read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return str(DeltaTable(str(table)).metadata().id)
    except DeltaError:
        return None


def transaction_version(table: Path, application: str) -> int | None:
    """The last batch that a Delta table has under a transaction id, or None."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return DeltaTable(str(table)).transaction_version(application)
    except DeltaError:
        return None  # a damaged log is for others to tell


def head_version(table: Path) -> int:
    """The newest version in a table's log, -1 where there is none."""
    log = table / "_delta_log"
    names = [path.name for path in log.iterdir()] if log.is_dir() else []
    return max(
        (int(n[:20]) for n in names if n[:20].isdigit() and n.endswith((".json", ".parquet"))), default=-1
    )


def flow_commits(table: Path, pipeline_id: str, flow: str) -> list[FlowCommit]:
    """The commits of a flow that the table's log still has, oldest first."""
    found = []
    log = table / "_delta_log"
    for path in sorted(log.glob("*.json")) if log.is_dir() else ():
        info, transaction = _head_of_commit(path)
        metadata = _user_metadata(info)
        epoch = metadata.get("epoch")
        if (
            metadata.get("pipeline") != pipeline_id
            or metadata.get("flow") != flow
            or not isinstance(epoch, int)
        ):
            continue
        ends = metadata.get("end_offsets")
        rows = info.get("operationMetrics", {}).get("numOutputRows")
        found.append(
            FlowCommit(
                int(path.stem),
                epoch,
                transaction,
                int(rows) if rows is not None else None,
                tuple(ends) if isinstance(ends, list) else None,
            )
        )
    return found


def epochs_written(table: Path, pipeline_id: str, flow: str) -> list[int]:
    """The epochs under which a flow has committed to a table, ascending, as far back as the log reaches."""
    return sorted({commit.epoch for commit in flow_commits(table, pipeline_id, flow)})


def commits_of(table: Path, pipeline_id: str, flow: str) -> list[Mapping[str, Any]]:
    """What a flow told with its commits to a table, oldest first, as far back as the log reaches."""
    log = table / "_delta_log"
    told = (
        [_user_metadata(_head_of_commit(path)[0]) for path in sorted(log.glob("*.json"))]
        if log.is_dir()
        else []
    )
    return [m for m in told if m.get("pipeline") == pipeline_id and m.get("flow") == flow]


def _head_of_commit(path: Path) -> tuple[dict[str, Any], tuple[str, int] | None]:
    info: dict[str, Any] = {}
    transaction = None
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            # Actions of files make up nearly all of a commit and are not looked into.
            if line.startswith('{"commitInfo"'):
                info = json.loads(line)["commitInfo"]
            elif line.startswith('{"txn"'):
                action = json.loads(line)["txn"]
                transaction = (str(action["appId"]), int(action["version"]))
    return info, transaction


def _user_metadata(info: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        value = json.loads(info.get("userMetadata") or "{}")
    except json.JSONDecodeError:
        return {}  # another writer's, in another form
    return value if isinstance(value, dict) else {}
