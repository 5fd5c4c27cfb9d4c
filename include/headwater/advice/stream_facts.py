"""Batches of streams from records of the event log: those of the definition of today, in the epoch of today."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headwater.advice.facts import BatchFact, StateFact
from headwater.event_log.details import FlowStatus, batch_millis

_MEASURES = ("backlog_records", "backlog_files", "backlog_bytes")
_NEWEST = 50
Record = Mapping[str, Any]


@dataclass(frozen=True)
class StreamHistory:
    """What the log has of one flow. ``partitions``: of each topic that it reads; ``spark_conf``: in force at its newest update;
    ``time_columns``: those by which a watermark could free its state.
    """

    batches: tuple[BatchFact, ...] = ()
    left_over: tuple[int, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    dropped: int = 0
    time_columns: tuple[str, ...] = ()


def updates_of_today(records: Iterable[Record]) -> frozenset[str] | None:
    """The ids of the updates by the definition that the newest one had, from ``create_update`` records, oldest first; None
    where the log does not say which definition any had: then all count.
    """
    hashes = {
        record["origin"]["update_id"]: record["details"].get("create_update", {}).get("source_hash")
        for record in records
    }
    known = [value for value in hashes.values() if value]
    return frozenset(update for update, value in hashes.items() if value == known[-1]) if known else None


def stream_histories(records: Sequence[Record], updates: frozenset[str] | None) -> dict[str, StreamHistory]:
    """By flow, from ``flow_definition``, ``flow_progress`` and ``stream_progress`` records, oldest first."""
    by_flow: dict[str, list[Record]] = {}
    for record in records:
        name = record["origin"]["flow_name"]
        if name and (updates is None or record["origin"]["update_id"] in updates):
            by_flow.setdefault(name, []).append(record)
    return {name: _history(own) for name, own in by_flow.items()}


def _history(records: Sequence[Record]) -> StreamHistory:
    epochs = [record["origin"]["epoch"] for record in records if record["origin"]["epoch"] is not None]
    epoch = max(epochs, default=None)
    rows: dict[int, Record] = {}
    reports: dict[int, Mapping[str, Any]] = {}
    left: dict[str, Mapping[str, Any]] = {}
    definition: Mapping[str, Any] = {}
    for record in records:
        origin, details = record["origin"], record["details"]
        body = details.get("flow_progress") or {}
        definition = details.get("flow_definition") or definition
        if body.get("status") == FlowStatus.COMPLETED:
            left[origin["update_id"]] = body.get("metrics") or {}
        batch = origin["batch_id"]
        if batch is None or origin["epoch"] != epoch:
            continue
        if record["event_type"] == "stream_progress":
            reports[batch] = _report(details)
        elif body.get("status") == FlowStatus.RUNNING:
            rows[batch] = record
    newest = sorted(rows)[-_NEWEST:]
    batches = tuple(_batch(number, rows[number], reports.get(number, {})) for number in newest)
    dropped = sum(_dropped(rows[number]) for number in newest)
    last = reports.get(newest[-1], {}) if newest else {}
    conf, times = definition.get("spark_conf") or {}, definition.get("time_columns") or ()
    return StreamHistory(batches, _left_over(left.values()), _partitions(last), conf, dropped, tuple(times))


def _batch(number: int, record: Record, report: Mapping[str, Any]) -> BatchFact:
    metrics = record["details"]["flow_progress"].get("metrics") or {}
    millis, work = batch_millis(metrics), metrics.get("executor_time_ms")
    phases = report.get("durationMs") or {}
    return BatchFact(
        number,
        record["origin"]["update_id"],
        metrics.get("num_input_rows"),
        None if millis is None else millis / 1000,
        metrics.get("input_rows_per_second"),
        metrics.get("processed_rows_per_second"),
        {name: float(value) / 1000 for name, value in phases.items()},
        tuple(_state(operator) for operator in report.get("stateOperators") or ()),
        _watermark(report),
        None if work is None else work / 1000,
    )


def _state(operator: Mapping[str, Any]) -> StateFact:
    return StateFact(
        str(operator.get("operatorName") or "?"),
        int(operator.get("numRowsTotal") or 0),
        int(operator.get("memoryUsedBytes") or 0),
        int(operator.get("numRowsRemoved") or 0),
    )


def _report(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Spark's own report; nothing where it was cut."""
    try:
        report = json.loads((details.get("stream_progress") or {}).get("progress_json") or "{}")
    except json.JSONDecodeError:
        return {}
    return report if isinstance(report, dict) else {}


def _watermark(report: Mapping[str, Any]) -> float | None:
    try:
        mark = datetime.fromisoformat(str((report.get("eventTime") or {}).get("watermark")))
    except ValueError:
        return None
    return (mark if mark.tzinfo else mark.replace(tzinfo=UTC)).timestamp()


def _left_over(ends: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """What each update left, in the measure that all of them have."""
    known = list(ends)
    for measure in _MEASURES:
        if known and all(metrics.get(measure) is not None for metrics in known):
            return tuple(int(metrics[measure]) for metrics in known)
    return ()


def _partitions(report: Mapping[str, Any]) -> dict[str, int]:
    offsets = [source.get("endOffset") for source in report.get("sources") or ()]
    topics = [item for offset in offsets if isinstance(offset, dict) for item in offset.items()]
    return {topic: len(parts) for topic, parts in topics if isinstance(parts, dict)}


def _dropped(record: Record) -> int:
    quality = record["details"]["flow_progress"].get("data_quality") or {}
    return int(quality.get("dropped_records") or 0)
