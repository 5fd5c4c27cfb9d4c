"""``events``: the event log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.commands.printing import print_json, print_table
from headwater.event_log import reader
from headwater.graph.pipeline_project import PipelineProject

_STYLES = {"ERROR": "red", "WARN": "yellow"}


def show_events(project: PipelineProject, filters: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the newest events that match ``filters`` (the arguments of ``reader.events``), newest last."""
    found = reader.events(project.state_folder, **filters)
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "events": found})
        return 0
    rows = [
        (
            event["timestamp"].strftime("%Y-%m-%d %H:%M:%S"),
            *(event["level"], event["event_type"], event["origin"]["update_id"][:8]),
            *(event["origin"]["flow_name"], event["origin"]["batch_id"], event["message"].partition("\n")[0]),
        )
        for event in found
    ]
    columns = ("time (UTC)", "level", "type", "update", "flow", "batch", "message")
    styles = [_STYLES.get(event["level"], "") for event in found]
    print_table(f"{project.pipeline_id}: events", columns, rows, row_styles=styles)
    return 0
