"""The event log's records about a request, read cheaply by all tasks that wait for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from headwater.event_log.event import event_table
from headwater.event_log.flow_result import FlowResult
from headwater.event_log.reader import events
from headwater.storage.place import Place
from headwater_airflow.following.starts import results_of_newest

_KEPT_REQUESTS = 32
_KINDS = ("create_update", "update_progress", "flow_progress", "planning_information")


@dataclass(frozen=True)
class _Seen:
    version: int
    results: tuple[FlowResult, ...]


_lock = threading.Lock()
_seen: dict[tuple[Place, str], _Seen] = {}


def log_version(state_folder: Place) -> int:
    """The newest version of the event log's table, or -1: only a folder is listed."""
    try:
        names = [path.name for path in (event_table(state_folder) / "_delta_log").iterdir()]
    except FileNotFoundError:
        return -1
    return max(
        (int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()), default=-1
    )


def request_results(state_folder: Place, request: str) -> tuple[FlowResult, ...]:
    """What each flow did under a request, over all attempts since its run was started or cleared last.

    The table is read once per version and process: a triggerer follows every dataset of an update at once.
    """
    key = (state_folder, request)
    with _lock:
        version = log_version(state_folder)
        known = _seen.get(key)
        if known is None or known.version != version:
            results = _read(state_folder, request) if version >= 0 else ()
            known = _Seen(version, results)
            _seen.pop(key, None)
            _seen[key] = known
            while len(_seen) > _KEPT_REQUESTS:
                del _seen[next(iter(_seen))]
        return known.results


def _read(state_folder: Place, request: str) -> tuple[FlowResult, ...]:
    return tuple(results_of_newest(events(state_folder, request_id=request, event_type=_KINDS)))
