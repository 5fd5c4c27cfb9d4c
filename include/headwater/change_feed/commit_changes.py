"""What one commit of a Delta table did to its rows.

Delta's protocol: where a commit has change files, only they count; else every file that it added holds
inserted rows and every file that it removed held deleted ones, unless the action says ``dataChange: false``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from headwater.change_feed.changed_columns import updates_that_change
from headwater.change_feed.counts import ChangeCounts
from headwater.delta_log.commits import commit_file, commit_info, commit_seconds, data_files, read_actions
from headwater.errors import SourceUnreachable
from headwater.storage.place import Place
from headwater.storage.walking import readable

# Commands that rewrite whole files to change some rows: without change files, only their metrics have the counts.
_REWRITING = ("UPDATE", "DELETE", "MERGE")
_METRICS = {
    "insert": ("numTargetRowsInserted", "num_target_rows_inserted"),
    "update": ("numTargetRowsUpdated", "numUpdatedRows", "num_target_rows_updated", "num_updated_rows"),
    "delete": ("numTargetRowsDeleted", "numDeletedRows", "num_target_rows_deleted", "num_deleted_rows"),
}


@dataclass(frozen=True)
class CommitChanges:
    """A version of a table. ``timestamp``: seconds since 1970. ``rewrites``: rows were changed without change files."""

    version: int
    timestamp: float
    counts: ChangeCounts
    changes_data: bool
    rewrites: bool = False


def commit_changes(table: Place, version: int, columns: Sequence[str] = ()) -> CommitChanges | None:
    """The changes of a version, or None where its commit is gone (logs are cleaned after a time).

    Args:
        table: the table's folder.
        version: of the table.
        columns: count only updates that change one of these; where the change files do not say, all count.

    Raises:
        SourceUnreachable: if the commit, or a change file, can't be read.

    """
    file = commit_file(table, version)
    try:
        actions = read_actions(file)
        info = commit_info(actions)
        seconds = commit_seconds(info, file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"The commit can't be read: {error}.", where=file) from None
    added, removed = data_files(actions, "add"), data_files(actions, "remove")
    feed = [action["cdc"] for action in actions if "cdc" in action]
    if not (added or removed or feed):
        return CommitChanges(version, seconds, ChangeCounts(), changes_data=False)
    if feed:
        counts = _of_change_files(table, feed, columns)
        return CommitChanges(version, seconds, counts, changes_data=True)
    if removed and str(info.get("operation", "")).upper() in _REWRITING:
        counts = _of_metrics(info)
        return CommitChanges(version, seconds, counts, changes_data=True, rewrites=bool(added))
    counts = ChangeCounts(_records(added), 0, _records(removed))
    return CommitChanges(version, seconds, counts, changes_data=True)


def _of_metrics(info: Mapping[str, Any]) -> ChangeCounts:
    metrics = info.get("operationMetrics") or {}
    counts: dict[str, int | None] = {}
    for change, names in _METRICS.items():
        values = [int(metrics[name]) for name in names if str(metrics.get(name, "")).isdigit()]
        counts[change] = values[0] if values else None
    operation = str(info.get("operation", "")).upper()
    if operation in ("UPDATE", "DELETE"):
        # Such a command has one kind of change only.
        mine = operation.lower()
        return ChangeCounts(**{change: counts[change] if change == mine else 0 for change in _METRICS})
    return ChangeCounts(**counts)


def _of_change_files(table: Place, feed: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> ChangeCounts:
    counts = ChangeCounts()
    for action in feed:
        file = table / unquote(str(action["path"]))
        types = _change_types(file)
        updates = types.count("update_postimage")
        if columns and updates:
            updates = updates_that_change(table, file, types, columns)
        counts += ChangeCounts(types.count("insert"), updates, types.count("delete"))
    return counts


def _change_types(file: Place) -> list[str]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        column = parquet.ParquetFile(readable(file)).read(columns=["_change_type"])["_change_type"]
    except (OSError, pa.ArrowException, KeyError) as error:
        raise SourceUnreachable(f"A change file can't be read: {error}", where=file) from None
    types: list[str] = column.to_pylist()
    return types


def _records(files: Sequence[Mapping[str, Any]]) -> int | None:
    total = 0
    for file in files:
        stats = json.loads(file["stats"]) if file.get("stats") else {}
        if "numRecords" not in stats:
            return None
        total += int(stats["numRecords"])
        vector = file.get("deletionVector")
        if vector:
            total -= int(vector.get("cardinality", 0))
    return total
