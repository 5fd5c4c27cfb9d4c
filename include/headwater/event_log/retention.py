"""How long the event log is kept, and the upkeep that keeps reads fast.

Decision 0083.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headwater.event_log.event import event_table
from headwater.event_log.reader import latest_update
from headwater.event_log.table_query import literal, moment_literal, query
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

_log = logging.getLogger(__name__)
# For how long readers that began before a rewrite still find their files.
_VACUUM_HOURS = 7 * 24
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Maintenance:
    """What was done: records ``deleted``, files ``removed`` from disk."""

    deleted: int = 0
    removed: int = 0


def keep_event_log(state_folder: Place, retention_days: int | None) -> Maintenance | None:
    """Maintain the log if that was last done more than a day ago; called at the end of every update.

    A failure is logged and does not fail the update. None where nothing was due.
    """
    mark = state_folder / "system" / "events.maintained"
    try:
        marked = _time_of(mark)
        if marked is not None and time.time() - marked < _DAY.total_seconds():
            return None
        if not (event_table(state_folder) / "_delta_log").is_dir():
            return None
        fresh = marked is None
        mark.touch()
        # A new log has nothing to remove.
        return None if fresh else maintain_event_log(state_folder, retention_days)
    except Exception as error:
        _log.warning("The event log could not be maintained: %s", error)
        return None


def maintain_event_log(
    state_folder: Place, retention_days: int | None, *, now: datetime | None = None
) -> Maintenance:
    """Delete what is older than the retention, write a checkpoint of the table's log, remove files that nothing needs.

    Kept whatever its age: the newest update, and of each epoch of each flow the record of its last batch (it says which
    batches the log has recorded, and which epochs a flow has had).

    Args:
        retention_days: how many days records stay; None for ever.

    """
    table = delta_table(event_table(state_folder))
    deleted = 0
    if retention_days is not None:
        limit = (now or datetime.now(UTC)) - timedelta(days=retention_days)
        latest = latest_update(state_folder)
        if latest is not None:
            limit = min(limit, latest.started)
        if _any_before(state_folder, limit):
            moment = limit.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            outcome = table.delete(f"\"timestamp\" < '{moment}'{_but(_last_records(state_folder))}")
            deleted = int(outcome.get("num_deleted_rows") or 0)
    table.create_checkpoint()
    table.cleanup_metadata()
    removed = table.vacuum(retention_hours=_VACUUM_HOURS, dry_run=False)
    return Maintenance(deleted, len(removed))


def expired_records(state_folder: Place, retention_days: int | None, *, now: datetime | None = None) -> int:
    """How many records ``maintain_event_log`` would delete; the newest update's count as young."""
    if retention_days is None:
        return 0
    limit = (now or datetime.now(UTC)) - timedelta(days=retention_days)
    latest = latest_update(state_folder)
    if latest is not None:
        limit = min(limit, latest.started)
    exceptions = _but(_last_records(state_folder))
    sql = f'select count(*) as n from events where "timestamp" < {moment_literal(limit)}{exceptions}'  # noqa: S608 - literals are quoted
    return int(query(state_folder, sql)[0]["n"])


def _time_of(mark: Place) -> float | None:
    try:
        return mark.stat().st_mtime
    except FileNotFoundError:
        return None


def _any_before(state_folder: Place, limit: datetime) -> bool:
    exceptions = _but(_last_records(state_folder))
    sql = f'select id from events where "timestamp" < {moment_literal(limit)}{exceptions} limit 1'  # noqa: S608 - literals are quoted
    return bool(query(state_folder, sql))


def _last_records(state_folder: Place) -> list[str]:
    rows = query(
        state_folder,
        "select last_value(id order by origin['batch_id']) as id from events"
        """ where event_type = 'flow_progress' and origin['batch_id'] is not null and details like '%"status":"RUNNING"%'"""
        " group by origin['flow_name'], origin['epoch']",
    )
    return [str(row["id"]) for row in rows]


def _but(ids: Iterable[str]) -> str:
    names = ", ".join(literal(name) for name in ids)
    return f" and id not in ({names})" if names else ""
