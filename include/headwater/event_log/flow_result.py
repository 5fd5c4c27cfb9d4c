"""What a flow did, summed up from its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from headwater.event_log.details import FlowStatus

# By the names of the metrics. Late: an upsert that came after a newer event of its key. Superseded: another
# event of the same batch outdates it. Tombstones: deletes that are remembered beside the table.
CHANGE_COUNTS = {
    "num_upserted_rows": "upserted",
    "num_deleted_rows": "deleted",
    "num_late_events": "late",
    "num_superseded_events": "superseded",
    "num_tombstones": "tombstones",
}


@dataclass(frozen=True)
class FlowResult:
    """A flow in an update. ``state`` is Lakeflow's status; rows are sums over batches; ``seconds`` of wall time.

    ``backlog_records`` is what the last batch left. ``version`` is the table's, after.
    ``changes``: of a target of AUTO CDC, what became of the events (see ``CHANGE_COUNTS``).
    ``technique``: of a materialized view, how it was refreshed, and ``reason``: why not in another way.
    """

    update_id: str
    dataset: str | None
    flow: str
    state: str
    input_rows: int = 0
    output_rows: int = 0
    dropped_rows: int = 0
    quarantined_rows: int = 0
    backlog_records: int | None = None
    batches: int = 0
    seconds: float | None = None
    error: str | None = None
    will_retry: bool = False
    version: int | None = None
    epoch: int = 0
    changes: Mapping[str, int] | None = None
    technique: str | None = None
    reason: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the flow is done in this update."""
        return FlowStatus(self.state).terminal and not self.will_retry

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class RowCounts:
    """Rows that a flow read, wrote, dropped and quarantined."""

    input_rows: int = 0
    output_rows: int = 0
    dropped_rows: int = 0
    quarantined_rows: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.input_rows + other.input_rows,
            self.output_rows + other.output_rows,
            self.dropped_rows + other.dropped_rows,
            self.quarantined_rows + other.quarantined_rows,
        )


@dataclass(frozen=True)
class _Progress:
    result: FlowResult
    started: datetime
    counts: RowCounts = RowCounts()
    seen: frozenset[str] = frozenset()


def fold_flow_results(records: Iterable[Mapping[str, Any]]) -> list[FlowResult]:
    """Results from ``flow_progress`` and ``planning_information`` records (oldest first), one a flow."""
    by_flow: dict[str, _Progress] = {}
    for record in records:
        flow = record["origin"]["flow_name"]
        if flow in by_flow and "planning_information" in record["details"]:
            by_flow[flow] = _planned(by_flow[flow], record["details"]["planning_information"])
            continue
        body = record["details"].get("flow_progress", {})
        statuses = {str(status) for status in FlowStatus}
        if flow is None or body.get("status") not in statuses:
            continue
        by_flow[flow] = _advance(by_flow.get(flow), record, body)
    return [replace(progress.result, **asdict(progress.counts)) for progress in by_flow.values()]


def _planned(progress: _Progress, body: Mapping[str, Any]) -> _Progress:
    """With what was decided last about a view: a refresh that failed on its way is planned once more."""
    chosen = next(
        (one["maintenance_type"] for one in body.get("technique_information") or () if one.get("is_chosen")),
        None,
    )
    technique = str(chosen).removeprefix("MAINTENANCE_TYPE_") if chosen else None
    return replace(
        progress, result=replace(progress.result, technique=technique, reason=body.get("reason") or None)
    )


def _advance(progress: _Progress | None, record: Mapping[str, Any], body: Mapping[str, Any]) -> _Progress:
    origin, when = record["origin"], record["timestamp"]
    status = FlowStatus(body["status"])
    if progress is None:
        first = FlowResult(origin["update_id"], origin["dataset_name"], origin["flow_name"], str(status))
        progress = _Progress(first, when)
    elif status is FlowStatus.EXCLUDED:
        # An attempt that left the flow out says nothing about what an earlier attempt did.
        return progress
    result = replace(progress.result, update_id=origin["update_id"], epoch=origin["epoch"] or 0)
    if status in (FlowStatus.QUEUED, FlowStatus.STARTING):
        progress = replace(progress, started=when)
        result = replace(result, error=None, will_retry=False, seconds=None)
    # Batches are reported by a listener, possibly after the end was recorded.
    late = status in (FlowStatus.RUNNING, FlowStatus.IDLE) and FlowStatus(result.state).terminal
    if not late:
        result = replace(result, state=str(status))
    backlog = body.get("metrics", {}).get("backlog_records")
    if backlog is not None:
        result = replace(result, backlog_records=backlog)
    if status.terminal:
        result = replace(
            result,
            # An end that another machine recorded may have a time before the beginning.
            seconds=max(0.0, (when - progress.started).total_seconds()),
            error=_message(record["error"]),
            will_retry=bool(body.get("will_retry")),
            version=body.get("version", result.version),
        )
    return _count(replace(progress, result=result), record, body, status)


def record_counts(record: Mapping[str, Any], *, any_batch: bool) -> RowCounts | None:
    """What a ``flow_progress`` record adds to the rows of its flow in an update; None where it has no counts.

    A batch's record has them all. A flow without batches of its own (a view) has them in its last record, and what its rules
    kept out may stand in another one.

    Args:
        any_batch: whether a batch of the flow was recorded before in this update.

    """
    body = record["details"].get("flow_progress", {})
    counts = _counts_of(body)
    if counts is None:
        return None
    status = FlowStatus(body["status"])
    if status is FlowStatus.RUNNING or (status.terminal and not any_batch):
        return counts
    return replace(counts, input_rows=0, output_rows=0)


def _count(
    progress: _Progress, record: Mapping[str, Any], body: Mapping[str, Any], status: FlowStatus
) -> _Progress:
    counts = record_counts(record, any_batch=bool(progress.seen))
    if counts is None or record["id"] in progress.seen:
        return progress
    result = progress.result
    if status is FlowStatus.RUNNING:
        result = replace(result, batches=result.batches + 1, changes=_changes_after(result.changes, body))
    elif status.terminal and not progress.seen:
        return replace(progress, counts=counts)
    return replace(
        progress, counts=progress.counts + counts, seen=progress.seen | {record["id"]}, result=result
    )


def _changes_after(before: Mapping[str, int] | None, body: Mapping[str, Any]) -> Mapping[str, int] | None:
    metrics = body.get("metrics", {})
    if "num_tombstones" not in metrics:
        return before
    return {
        name: (before or {}).get(name, 0) + int(metrics.get(metric) or 0)
        for metric, name in CHANGE_COUNTS.items()
    }


def _counts_of(body: Mapping[str, Any]) -> RowCounts | None:
    metrics, quality = body.get("metrics", {}), body.get("data_quality", {})
    if not any(name.startswith("num_") for name in metrics) and not quality:
        return None
    return RowCounts(
        int(metrics.get("num_input_rows") or 0),
        int(metrics.get("num_output_rows") or 0),
        int(quality.get("dropped_records") or 0),
        int(quality.get("quarantined_records") or 0),
    )


def _message(error: Mapping[str, Any] | None) -> str | None:
    exceptions = (error or {}).get("exceptions") or []
    return exceptions[0]["message"] if exceptions else None
