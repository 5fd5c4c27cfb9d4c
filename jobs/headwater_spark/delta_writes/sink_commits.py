"""What the Delta sink committed, read from the table's log: Spark's progress does not say how many rows it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.delta_log.commits import CommitHead, commit_file, commit_head, commit_versions
from headwater.delta_log.table_history import head_version
from headwater_spark.rules.expectations import Quality, RuleCounts


@dataclass(frozen=True)
class SinkCommit:
    """The commit of one batch. ``rows`` were written; of a merge they are the ``upserted``; ``deleted`` were removed.

    ``metadata``: its user metadata. ``counted``: whether Delta counted the rows.
    """

    version: int
    rows: int
    timestamp: int
    upserted: int | None = None
    deleted: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    counted: bool = True

    @property
    def quality(self) -> Quality | None:
        """What the batch came to, where it was judged before it was written."""
        return _quality(self.metadata.get("quality"))


class SinkCommits:
    """The commits of one flow, found by transaction id and batch number.

    An id is the query's own where the Delta sink wrote, and ``<pipeline>.<flow>@<epoch>`` where foreachBatch did.
    """

    # A batch that a killed driver committed lies at most this far back when the flow starts again.
    _LOOK_BACK = 100

    def __init__(self, table: Path, *applications: str, since: int | None = None) -> None:
        """``since``: the version to look from, where that is known."""
        self._table = table
        self._applications = applications
        self._next = max(0, head_version(table) - self._LOOK_BACK) if since is None else since
        self._found: dict[int, SinkCommit] = {}

    def find(self, batch_id: int) -> SinkCommit | None:
        """The commit of a batch, or None where it left none (a batch without rows may not)."""
        if batch_id not in self._found:
            self._read_on()
        return self._found.get(batch_id)

    def _read_on(self) -> None:
        for version in (number for number in commit_versions(self._table) if number >= self._next):
            self._next = version + 1
            try:
                head = commit_head(commit_file(self._table, version))
            except FileNotFoundError:
                continue  # cleaned away meanwhile: what is as old is of no batch in flight
            for application in self._applications:
                if application in head.transactions:
                    self._found[head.transactions[application]] = _commit(version, head)


def _commit(version: int, head: CommitHead) -> SinkCommit:
    info = head.info
    metrics = {
        name: int(value) for name, value in info.get("operationMetrics", {}).items() if str(value).isdigit()
    }
    timestamp = int(info.get("timestamp", 0))
    metadata = head.user_metadata
    if info.get("operation") != "MERGE":
        return SinkCommit(
            version,
            metrics.get("numOutputRows", 0),
            timestamp,
            metadata=metadata,
            counted="numOutputRows" in metrics,
        )
    # Rows that a merge only copied from one file to another are in its numOutputRows too.
    upserted = metrics.get("numTargetRowsInserted", 0) + metrics.get("numTargetRowsUpdated", 0)
    return SinkCommit(
        version, upserted, timestamp, upserted, metrics.get("numTargetRowsDeleted", 0), metadata
    )


def as_metadata(quality: Quality) -> dict[str, Any]:
    """What a batch came to, as it is kept with the table's commit: known also where the driver dies before it tells."""
    failed = {rule.name: rule.failed for rule in quality.rules}
    return {
        "rows": quality.rows,
        "dropped": quality.dropped,
        "quarantined": quality.quarantined,
        "failed": failed,
        "files": quality.files,
    }


def quality_details(quality: Quality, dataset: str) -> dict[str, Any]:
    """What ``flow_progress`` takes of it."""
    return {
        "dropped": quality.dropped,
        "quarantined": quality.quarantined,
        "quarantined_files": quality.files or None,
        "expectations": [
            {"name": r.name, "dataset": dataset, "passed_records": r.passed, "failed_records": r.failed}
            for r in quality.rules
        ],
    }


def _quality(metadata: Any) -> Quality | None:
    if not isinstance(metadata, Mapping):
        return None
    rows = int(metadata["rows"])
    rules = tuple(RuleCounts(name, rows - bad, bad) for name, bad in metadata["failed"].items())
    return Quality(
        rows, int(metadata["dropped"]), rules, int(metadata["quarantined"]), int(metadata.get("files", 0))
    )
