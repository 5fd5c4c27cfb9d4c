"""The last batches and updates of a pipeline, from its event log."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headwater.event_log.details import FlowStatus, batch_millis
from headwater.event_log.flow_result import FlowResult, fold_flow_results
from headwater.event_log.reader import events
from headwater.event_log.reader import updates as recent_updates
from headwater.event_log.update_summary import UpdateSummary, fold_updates
from headwater.storage.place import Place
from headwater_airflow.following.update_watch import log_version

# How many records are read: weeks of a small pipeline, the last hours of a busy one.
_RECORDS = 2000
# The last one for the signs of life of a continuous update.
_TYPES = ("create_update", "update_progress", "flow_progress", "planning_information", "operation_progress")
_KEPT = 100

_lock = threading.Lock()
_cache: dict[Place, tuple[int, History]] = {}


@dataclass(frozen=True)
class Batch:
    """One batch of a flow; ``seconds`` of execution, ``backlog`` in records after it."""

    flow: str
    dataset: str
    at: datetime
    batch_id: int | None
    epoch: int | None
    input_rows: int
    output_rows: int
    dropped_rows: int
    quarantined_rows: int
    seconds: float | None
    backlog: int | None


@dataclass
class RuleTally:
    """How many rows a rule has passed and failed."""

    passed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class History:
    """The history in the newest records. ``results`` are of the newest update that named the flow."""

    updates: tuple[UpdateSummary, ...] = ()
    batches: Mapping[str, tuple[Batch, ...]] = field(default_factory=dict)
    results: Mapping[str, FlowResult] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, RuleTally]] = field(default_factory=dict)
    newest: datetime | None = None

    @property
    def last_update(self) -> UpdateSummary | None:
        """The newest update."""
        return self.updates[-1] if self.updates else None


def read_history(state_folder: Place) -> History:
    """Fold the newest records of the log, once for each version of it; empty where there is no log yet."""
    version = log_version(state_folder)
    with _lock:
        cached = _cache.get(state_folder)
    if cached is not None and cached[0] == version:
        return cached[1]
    history = _read(state_folder)
    with _lock:
        _cache[state_folder] = (version, history)
        while len(_cache) > _KEPT:
            del _cache[next(iter(_cache))]
    return history


def _read(state_folder: Place) -> History:
    records = events(state_folder, event_type=_TYPES, limit=_RECORDS)
    progress = [record for record in records if record["event_type"] == "flow_progress"]
    batches: dict[str, list[Batch]] = defaultdict(list)
    rules: dict[str, dict[str, RuleTally]] = defaultdict(lambda: defaultdict(RuleTally))
    seen: set[str] = set()
    for record in progress:
        body = record["details"].get("flow_progress") or {}
        if record["id"] in seen or record["origin"]["flow_name"] is None:
            continue
        seen.add(record["id"])
        if body.get("status") == FlowStatus.RUNNING and body.get("metrics"):
            batches[record["origin"]["flow_name"]].append(_batch(record, body))
        elif (body.get("data_quality") or {}).get("expectations") and batches[record["origin"]["flow_name"]]:
            _complete(batches[record["origin"]["flow_name"]], body["data_quality"])
        _tally(rules, record, body)
    made = [r for r in records if r["event_type"] in ("create_update", "update_progress")]
    # The records of an update that has run for long begin before these.
    whole = made and made[0]["event_type"] == "create_update"
    return History(
        tuple(fold_updates(made)) if whole else tuple(recent_updates(state_folder)),
        {flow: tuple(entries) for flow, entries in batches.items()},
        _newest_results([r for r in records if r["event_type"] in ("flow_progress", "planning_information")]),
        {dataset: dict(entries) for dataset, entries in rules.items()},
        records[-1]["timestamp"] if records else None,
    )


def _batch(record: Mapping[str, Any], body: Mapping[str, Any]) -> Batch:
    origin, metrics, quality = record["origin"], body["metrics"], body.get("data_quality") or {}
    millis = batch_millis(metrics)
    return Batch(
        origin["flow_name"],
        origin["dataset_name"] or "",
        record["timestamp"],
        origin["batch_id"],
        origin["epoch"],
        _count(metrics.get("num_input_rows")),
        _count(metrics.get("num_output_rows")),
        _count(quality.get("dropped_records")),
        _count(quality.get("quarantined_records")),
        None if millis is None else millis / 1000,
        metrics.get("backlog_records"),
    )


def _complete(batches: list[Batch], quality: Mapping[str, Any]) -> None:
    """A view's one batch and its quality stand in two records."""
    batches[-1] = replace(
        batches[-1],
        dropped_rows=_count(quality.get("dropped_records")),
        quarantined_rows=_count(quality.get("quarantined_records")),
    )


def _tally(
    rules: Mapping[str, Mapping[str, RuleTally]], record: Mapping[str, Any], body: Mapping[str, Any]
) -> None:
    for rule in (body.get("data_quality") or {}).get("expectations") or ():
        dataset = rule.get("dataset") or record["origin"]["dataset_name"] or ""
        tally = rules[dataset][str(rule.get("name"))]
        tally.passed += _count(rule.get("passed_records"))
        tally.failed += _count(rule.get("failed_records"))


def _newest_results(progress: list[dict[str, Any]]) -> dict[str, FlowResult]:
    """How each flow stands in the newest update that it took part in; its rows are counted elsewhere."""
    by_update: dict[str, list[dict[str, Any]]] = defaultdict(list)
    last_batch = {
        (record["origin"]["update_id"], record["origin"]["flow_name"]): record["id"]
        for record in progress
        if record["event_type"] == "flow_progress"
    }
    for record in progress:
        origin, body = record["origin"], record["details"].get("flow_progress") or {}
        newest = last_batch.get((origin["update_id"], origin["flow_name"])) == record["id"]
        if newest or body.get("status") != FlowStatus.RUNNING:
            by_update[origin["update_id"]].append(record)
    results: dict[str, FlowResult] = {}
    for records in by_update.values():
        for result in fold_flow_results(records):
            if result.state != FlowStatus.EXCLUDED or result.flow not in results:
                results[result.flow] = result
    return results


def _count(value: Any) -> int:
    return int(value or 0)
