"""What a flow committed, read from its table's log: Spark's progress does not say how many rows were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.delta_log.commits import CommitHead, commit_file, commit_head, commit_versions
from headwater.delta_log.table_history import head_version
from headwater.storage.place import Place
from headwater_spark.rules.expectations import Quality, RuleCounts


@dataclass(frozen=True)
class BatchCommit:
    """The commit of one batch. ``rows`` were written; for a merge they are the ``upserted``; ``deleted`` were removed.

    ``metadata``: the user metadata of the commit. ``counted``: whether Delta recorded how many rows.
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
        """The batch's quality, where it was judged before it was written."""
        return _quality(self.metadata.get("quality"))


class BatchCommits:
    """The commits of one flow, looked up by transaction id and batch number.

    The id is the query's own where the Delta sink wrote, and ``<pipeline>.<flow>@<epoch>`` where foreachBatch did.
    """

    # A batch that a killed driver committed is at most this far back when the flow starts again.
    _LOOK_BACK = 100

    def __init__(self, table: Place, *applications: str, since: int | None = None) -> None:
        """``since``: the first version to read, where that is known."""
        self._table = table
        self._applications = applications
        self._next = max(0, head_version(table) - self._LOOK_BACK) if since is None else since
        self._commits: dict[int, BatchCommit] = {}

    def find(self, batch_id: int) -> BatchCommit | None:
        """The commit of a batch, or None where it has none (a batch without rows may have none)."""
        if batch_id not in self._commits:
            self._read_on()
        # Batches are looked up in order, and a query may run for days.
        for batch in [batch for batch in self._commits if batch < batch_id - self._LOOK_BACK]:
            del self._commits[batch]
        return self._commits.get(batch_id)

    def _read_on(self) -> None:
        for version in (number for number in commit_versions(self._table) if number >= self._next):
            self._next = version + 1
            try:
                head = commit_head(commit_file(self._table, version))
            except FileNotFoundError:
                continue  # cleaned up meanwhile: a commit that old is not of a batch in flight
            for application in self._applications:
                if application in head.transactions:
                    self._commits[head.transactions[application]] = _commit(version, head)


def _commit(version: int, head: CommitHead) -> BatchCommit:
    info = head.info
    metrics = {
        name: int(value) for name, value in info.get("operationMetrics", {}).items() if str(value).isdigit()
    }
    timestamp = int(info.get("timestamp", 0))
    if info.get("operation") != "MERGE":
        return BatchCommit(
            version,
            metrics.get("numOutputRows", 0),
            timestamp,
            metadata=head.metadata,
            counted="numOutputRows" in metrics,
        )
    # A merge's numOutputRows includes rows that it only copied from one file to another.
    upserted = metrics.get("numTargetRowsInserted", 0) + metrics.get("numTargetRowsUpdated", 0)
    deleted = metrics.get("numTargetRowsDeleted", 0)
    return BatchCommit(version, upserted, timestamp, upserted, deleted, head.metadata)


def as_metadata(quality: Quality) -> dict[str, Any]:
    """A batch's quality as the table's commit records it, so that it is known even if the driver dies before reporting it."""
    return {
        "rows": quality.rows,
        "dropped": quality.dropped,
        "quarantined": quality.quarantined,
        "failed": {rule.name: rule.failed for rule in quality.rules},
        "files": quality.files,
    }


def quality_details(quality: Quality, dataset: str) -> dict[str, Any]:
    """A batch's quality as arguments of ``flow_progress``."""
    return {
        "dropped": quality.dropped,
        "quarantined": quality.quarantined,
        "quarantined_files": quality.files or None,
        "expectations": [
            {"name": r.name, "dataset": dataset, "passed_records": r.passed, "failed_records": r.failed}
            for r in quality.rules
        ],
    }


def _quality(counts: Any) -> Quality | None:
    if not isinstance(counts, Mapping):
        return None
    rows = int(counts["rows"])
    rules = tuple(RuleCounts(name, rows - failed, failed) for name, failed in counts["failed"].items())
    return Quality(
        rows, int(counts["dropped"]), rules, int(counts["quarantined"]), int(counts.get("files", 0))
    )
