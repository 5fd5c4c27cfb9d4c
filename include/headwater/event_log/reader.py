"""Queries over the event log without Spark. A log that does not exist yet gives empty answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater.event_log.flow_result import FlowResult, fold_flow_results
from headwater.event_log.table_query import literal, moment_literal, query
from headwater.event_log.update_summary import UpdateSummary, fold_updates
from headwater.storage.place import Place

__all__ = [
    "FlowResult",
    "LogNames",
    "UpdateSummary",
    "events",
    "flow_results",
    "last_batch",
    "latest_update",
    "log_names",
    "updates",
]

_SEQUENCE = "\"sequence\"['data_plane_id']['seq_no']"
# An update writes one create_update and at most seven update_progress records.
_RECORDS_PER_UPDATE = 10


def events(
    state_folder: Place,
    *,
    update_id: str | None = None,
    request_id: str | None = None,
    flow: str | None = None,
    dataset: str | None = None,
    event_type: str | Iterable[str] | None = None,
    level: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    after: int | None = None,
    containing: str | None = None,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """The newest ``limit`` records that match, newest last; ``details`` is parsed.

    ``level``: INFO, WARN, ERROR or METRICS; ``event_type``: one or several; ``since`` is part of the span, ``until`` is
    not; ``after``: only records with a higher sequence number; ``containing``: a piece of text in the details' JSON.
    """
    types = [event_type] if isinstance(event_type, str) else list(event_type or ())
    conditions = [
        *_equal("origin['update_id']", update_id),
        *_equal("origin['request_id']", request_id),
        *_equal("origin['flow_name']", flow),
        *_equal("origin['dataset_name']", dataset),
        *_equal("level", level),
        *_between(since, until, after),
    ]
    if containing is not None:
        conditions.append(f"strpos(details, {literal(containing)}) > 0")
    if types:
        conditions.append(f"event_type in ({', '.join(literal(name) for name in types)})")
    where = f"where {' and '.join(conditions)}" if conditions else ""
    tail = f"limit {int(limit)}" if limit is not None else ""
    order = f"order by {_SEQUENCE} desc"
    rows = query(state_folder, f"select * from events {where} {order} {tail}")  # noqa: S608 - literals are quoted
    for row in rows:
        row["details"] = _parsed(row["details"])
        # What another version has there that is no object is not understood.
        if not isinstance(row["details"].get(row["event_type"], {}), dict):
            del row["details"][row["event_type"]]
    return rows[::-1]


@dataclass(frozen=True)
class LogNames:
    """The names in the records; updates in the order in which they began."""

    flows: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


def log_names(state_folder: Place) -> LogNames:
    """Which flows, datasets, types, updates and requests the log has records of."""
    of_origin = ("flow_name", "dataset_name", "update_id", "request_id")
    flow, dataset, update, request = (f"origin['{name}']" for name in of_origin)
    parts = (flow, dataset, "event_type", update, request)
    named = ", ".join(f"{part} as n{number}" for number, part in enumerate(parts))
    rows = query(
        state_folder,
        f"select {named} from events group by {', '.join(parts)} order by min({_SEQUENCE})",  # noqa: S608 - our names
    )
    names = [tuple(dict.fromkeys(row[f"n{n}"] for row in rows if row[f"n{n}"])) for n in range(len(parts))]
    return LogNames(*names)


def updates(state_folder: Place, limit: int = 20) -> list[UpdateSummary]:
    """The newest ``limit`` updates, newest last."""
    records = events(
        state_folder, event_type=("create_update", "update_progress"), limit=limit * _RECORDS_PER_UPDATE
    )
    return fold_updates(records)[-limit:]


def latest_update(state_folder: Place) -> UpdateSummary | None:
    """The newest update, or None where there was none."""
    return next(iter(updates(state_folder, 1)), None)


def flow_results(
    state_folder: Place, *, update_id: str | None = None, request_id: str | None = None
) -> list[FlowResult]:
    """What each flow did in an update, or over all updates of a request (attempts of one Airflow run).

    With neither, of the newest update. Flows come in the order in which they first appear.
    """
    if update_id is None and request_id is None:
        latest = latest_update(state_folder)
        if latest is None:
            return []
        update_id = latest.update_id
    kinds = ("flow_progress", "planning_information")
    return fold_flow_results(
        events(state_folder, update_id=update_id, request_id=request_id, event_type=kinds)
    )


def has_user_action(state_folder: Place, update_id: str) -> bool:
    """Whether what a person did under an id is recorded: a verb that is run again need not say it twice."""
    return bool(events(state_folder, update_id=update_id, event_type="user_action", limit=1))


def last_batch(state_folder: Place, flow: str, epoch: int) -> int | None:
    """The highest batch of a flow's epoch that the log has a record of."""
    rows = query(
        state_folder,
        f"select max(origin['batch_id']) as batch from events where event_type = 'flow_progress'"  # noqa: S608 - literals are quoted
        f" and origin['flow_name'] = {literal(flow)} and origin['epoch'] = {int(epoch)}"
        """ and details like '%"status":"RUNNING"%'""",
    )
    return rows[0]["batch"] if rows else None


def last_batches(state_folder: Place) -> dict[tuple[str, int], int]:
    """``last_batch`` of every flow and epoch, in one read."""
    rows = query(
        state_folder,
        "select origin['flow_name'] as flow, origin['epoch'] as epoch, max(origin['batch_id']) as batch from events"
        """ where event_type = 'flow_progress' and origin['batch_id'] is not null and details like '%"status":"RUNNING"%'"""
        " group by 1, 2",
    )
    return {(row["flow"], row["epoch"] or 0): row["batch"] for row in rows}


def _equal(column: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{column} = {literal(value)}"]


def _between(since: datetime | None, until: datetime | None, after: int | None) -> list[str]:
    bounds = [
        *([f'"timestamp" >= {moment_literal(since)}'] if since is not None else []),
        *([f'"timestamp" < {moment_literal(until)}'] if until is not None else []),
    ]
    return [*bounds, f"{_SEQUENCE} > {int(after)}"] if after is not None else bounds


def _parsed(details: Any) -> dict[str, Any]:
    # Another version may keep them as a column of another type than text.
    try:
        value = json.loads(details or "{}")
    except (json.JSONDecodeError, TypeError):
        return details if isinstance(details, dict) else {}
    return value if isinstance(value, dict) else {}
