"""How many rows a refresh wrote, as its commit says: the newest of the view's table."""

from __future__ import annotations

from headwater.delta_log.commits import commit_file, commit_head
from headwater.delta_log.table_history import head_version
from headwater.delta_log.versions import read_commit
from headwater.storage.place import Place
from headwater_spark.rules.expectations import Quality


def merged_groups(table: Place) -> Quality:
    """The groups that a merge wrote."""
    metrics = commit_head(commit_file(table, head_version(table))).info.get("operationMetrics", {})
    rows = sum(int(metrics.get(name, 0)) for name in ("numTargetRowsInserted", "numTargetRowsUpdated"))
    return Quality(rows, 0, ())


def overwritten_rows(table: Place) -> Quality:
    """The rows that took the place of all: those of the files that came."""
    commit = read_commit(table, head_version(table))
    return Quality(sum(file.records or 0 for file in commit.added) if commit is not None else 0, 0, ())
