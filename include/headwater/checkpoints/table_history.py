"""What a table's own log says: whether there is a table, and which flows wrote to it. It outlives a lost checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def table_exists(table: Path) -> bool:
    """Whether a Delta table is there. A folder for its log alone is none: a driver killed in its first commit leaves it."""
    log = table / "_delta_log"
    return log.is_dir() and any(path.name[:20].isdigit() for path in log.iterdir())


def epochs_written(table: Path, pipeline_id: str, flow: str) -> list[int]:
    """The epochs under which a flow has committed to a table, ascending, as far back as the log reaches."""
    epochs = {metadata.get("epoch") for metadata in commits_of(table, pipeline_id, flow)}
    return sorted(epoch for epoch in epochs if isinstance(epoch, int))


def commits_of(table: Path, pipeline_id: str, flow: str) -> list[Mapping[str, Any]]:
    """What a flow told with its commits to a table, in no order, as far back as the log reaches."""
    return [
        metadata
        for metadata in _user_metadata(table)
        if metadata.get("pipeline") == pipeline_id and metadata.get("flow") == flow
    ]


def _user_metadata(table: Path) -> Iterator[Mapping[str, Any]]:
    log = table / "_delta_log"
    for path in log.glob("*.json") if log.is_dir() else ():
        with path.open(encoding="utf-8") as lines:
            # Actions of files make up nearly all of a commit and are not looked into.
            info = next((line for line in lines if line.startswith('{"commitInfo"')), None)
        text = json.loads(info)["commitInfo"].get("userMetadata") if info else None
        try:
            value = json.loads(text or "{}")
        except json.JSONDecodeError:
            continue  # another writer's, in another form
        if isinstance(value, dict):
            yield value
