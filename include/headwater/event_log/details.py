"""The ``details`` of each type of event, in Lakeflow's shapes with our additions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

EVENT_TYPES = (
    *("user_action", "create_update", "runtime_details", "update_progress", "planning_information"),
    *("dataset_definition", "sink_definition", "flow_definition"),
    *("flow_progress", "stream_progress", "operation_progress", "hook_progress"),
)


class FlowStatus(StrEnum):
    """Where a flow stands within an update."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    IDLE = "IDLE"
    RESTARTING = "RESTARTING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    STOPPED = "STOPPED"
    EXCLUDED = "EXCLUDED"

    @property
    def terminal(self) -> bool:
        """Whether the flow is done in this update."""
        return self in _TERMINAL


_TERMINAL = {
    FlowStatus.COMPLETED,
    FlowStatus.FAILED,
    FlowStatus.SKIPPED,
    FlowStatus.STOPPED,
    FlowStatus.EXCLUDED,
}


class UpdateState(StrEnum):
    """Where an update stands."""

    QUEUED = "QUEUED"
    CREATED = "CREATED"
    WAITING_FOR_RESOURCES = "WAITING_FOR_RESOURCES"
    INITIALIZING = "INITIALIZING"
    RESETTING = "RESETTING"
    SETTING_UP_TABLES = "SETTING_UP_TABLES"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def terminal(self) -> bool:
        """Whether the update is over."""
        return self in (UpdateState.COMPLETED, UpdateState.FAILED, UpdateState.CANCELED)


def flow_progress(
    status: FlowStatus,
    *,
    metrics: Mapping[str, Any] | None = None,
    dropped: int | None = None,
    quarantined: int | None = None,
    quarantined_files: int | None = None,
    expectations: Sequence[Mapping[str, Any]] = (),
    quality_known: bool = True,
    counts_origin: str | None = None,
    counts_reason: str | None = None,
    version: int | None = None,
    end_offsets: Any = None,
    will_retry: bool | None = None,
    attempt: int | None = None,
    engine: str | None = None,
    engine_reason: str | None = None,
) -> dict[str, Any]:
    """Details of a ``flow_progress`` event.

    ``metrics``: ``num_input_rows``, ``num_output_rows``, ``num_upserted_rows``, ``num_deleted_rows``,
    ``num_late_events``, ``num_superseded_events``, ``num_tied_events``, ``num_tombstones`` (of AUTO CDC),
    ``backlog_records``, ``backlog_bytes``, ``backlog_files``, ``backlog_seconds``, ``executor_time_ms``,
    ``source_metrics`` (the backlog, source by source); and those of ``stream_metrics``.
    ``expectations``: ``name``, ``dataset``, ``passed_records``, ``failed_records`` each.
    ``quality_known``: False where it is not known what rules kept out; the counts are then null, not 0.
    ``counts_origin``: RECOMPUTED where a batch was evaluated again to count its rows, UNKNOWN where (some) counts are not
    known, with the ``counts_reason``.
    ``version``: of the table, after. ``end_offsets``: the batch's position, as in the checkpoint.
    ``attempt``: which start in a row this is, of a flow of a continuous update that has failed.
    ``engine``: what wrote a batch of AUTO CDC, ``driver_rewrite`` or ``merge``; ``engine_reason``: why it was the second.
    """
    body: dict[str, Any] = {"status": str(status)}
    known = {name: value for name, value in (metrics or {}).items() if value is not None}
    if known:
        body["metrics"] = known
    quality = {
        "dropped_records": dropped,
        "quarantined_records": quarantined,
        "quarantined_files": quarantined_files,
    }
    quality = {name: value for name, value in quality.items() if value is not None}
    if not quality_known:
        body["data_quality"] = {
            "dropped_records": None,
            "quarantined_records": None,
            "expectations": [dict(item) for item in expectations],
        }
    elif quality or expectations:
        body["data_quality"] = {**quality, "expectations": [dict(item) for item in expectations]}
    counts = {
        name: value for name, value in {"origin": counts_origin, "reason": counts_reason}.items() if value
    }
    extra = {
        "counts": counts or None, "version": version, "end_offsets": end_offsets, "will_retry": will_retry, "attempt": attempt,
        "engine": engine, "engine_reason": engine_reason,
    }  # fmt: skip
    return {"flow_progress": {**body, **{name: value for name, value in extra.items() if value is not None}}}


def batch_millis(metrics: Mapping[str, Any]) -> float | None:
    """How long a batch took by the clock, in milliseconds; older logs had this under another name."""
    millis = metrics.get("batch_duration_ms", metrics.get("executor_time_ms"))
    return None if millis is None else float(millis)


def update_progress(state: UpdateState) -> dict[str, Any]:
    """Details of an ``update_progress`` event."""
    return {"update_progress": {"state": str(state)}}


def create_update(
    *,
    cause: str = "USER_ACTION",
    full_refresh: bool = False,
    refresh_selection: Sequence[str] = (),
    full_refresh_selection: Sequence[str] = (),
    requested_at: datetime | None = None,
    announced_together: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Details of a ``create_update`` event: what was asked for, by whom (``cause``).

    ``requested_at``: when, by the clock of whoever requested it; left out where that is not known.
    ``announced_together``: whether its tables are announced when the whole update has ended well; left out where each is by itself.
    """
    if announced_together:
        more["announced_together"] = True
    if requested_at is not None:
        more["requested_at"] = requested_at.isoformat()
    return {
        "create_update": {
            "cause": cause,
            "full_refresh": full_refresh,
            "refresh_selection": list(refresh_selection),
            "full_refresh_selection": list(full_refresh_selection),
            **more,
        }
    }


def user_action(action: str, user_name: str, **more: Any) -> dict[str, Any]:
    """Details of a ``user_action`` event. ``action``: START, CANCEL, ...; ``user_name``: whom the machine knows."""
    return {"user_action": {"action": action, "user_name": user_name, **more}}


def hook_progress(name: str, state: str, failures: int) -> dict[str, Any]:
    """Details of a ``hook_progress`` event. ``state``: ENABLED, FAILED, DISABLED, or STOPPED (given up at the end)."""
    return {"hook_progress": {"name": name, "state": state, "consecutive_failures": failures}}


def planning_information(technique: str, reason: str) -> dict[str, Any]:
    """Details of a ``planning_information`` event: how a materialized view is refreshed.

    ``technique``: MAINTENANCE_TYPE_COMPLETE_RECOMPUTE, MAINTENANCE_TYPE_NO_OP, ... in Lakeflow's words.
    """
    chosen = {"maintenance_type": technique, "is_chosen": True, "is_applicable": True}
    return {"planning_information": {"technique_information": [chosen], "reason": reason}}


def operation_progress(kind: str, status: str, duration_ms: int | None, **more: Any) -> dict[str, Any]:
    """Details of an ``operation_progress`` event. ``kind``: AUTO_LOADER_LISTING, AUTO_LOADER_BACKFILL, CDC_SNAPSHOT,
    CHECKPOINT_MENDED, CHECKPOINT_IMPORTED, STATE_SETTING_KEPT, BACKFILL, CONTINUOUS (a sign of life of a continuous update),
    METASTORE.
    """
    body = {"type": kind, "status": status, "duration_ms": duration_ms, **more}
    return {"operation_progress": {name: value for name, value in body.items() if value is not None}}
