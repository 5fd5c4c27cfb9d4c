"""``events``: the event log, as a table, as JSON, or as it grows; and queries over it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from headwater.contract.printing import print_json, print_table
from headwater.event_log import reader
from headwater.graph.pipeline_project import PipelineProject

FOLLOW_SECONDS = 1.0
_STYLES = {"ERROR": "red", "WARN": "yellow"}


def show_events(project: PipelineProject, filters: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the newest events that match ``filters`` (the arguments of ``reader.events``), newest last."""
    records = reader.events(project.state_folder, **filters)
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "events": records})
        return 0
    columns = ("time (UTC)", "level", "type", "update", "flow", "batch", "message")
    styles = [_STYLES.get(event["level"], "") for event in records]
    print_table(f"{project.pipeline_id}: events", columns, [_cells(e) for e in records], row_styles=styles)
    return 0


def follow_events(
    project: PipelineProject,
    filters: Mapping[str, Any],
    *,
    as_json: bool,
    wait: Callable[[float], object] = time.sleep,
) -> int:
    """Print the newest events, then each new one as it is written, a line each, until Ctrl-C.

    With ``as_json`` each line is the JSON object of one event.
    """
    records = reader.events(project.state_folder, **filters)
    seen = 0
    try:
        while True:
            for event in records:
                seen = max(seen, event["sequence"]["data_plane_id"]["seq_no"])
                _print_line(event, as_json=as_json)
            wait(FOLLOW_SECONDS)
            records = reader.events(project.state_folder, **{**filters, "after": seen, "limit": None})
    except KeyboardInterrupt:
        return 0


def _print_line(event: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(event)
        return
    when, level, kind, _, flow, _, message = _cells(event)
    print(f"{when}  {level:<7}  {kind:<20}  {flow or '-'}: {message}", flush=True)


def _cells(event: Mapping[str, Any]) -> tuple[Any, ...]:
    origin = event["origin"]
    return (
        event["timestamp"].strftime("%Y-%m-%d %H:%M:%S"),
        *(event["level"], event["event_type"], (origin["update_id"] or "")[:8]),
        *(origin["flow_name"], origin["batch_id"], (event["message"] or "").partition("\n")[0]),
    )
