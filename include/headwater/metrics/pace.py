"""How long the newest batches took."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.event_log.details import batch_millis
from headwater.event_log.reader import events

_RECORDS = 2000
_NEWEST = 5


@dataclass(frozen=True)
class FlowPace:
    """The median of the seconds that a flow's newest batches (at most five) took."""

    flow: str
    dataset: str
    batches: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The pace as JSON values."""
        return asdict(self)


def flow_paces(state_folder: Path) -> list[FlowPace]:
    """The pace of each flow that has run batches, by name; one slow batch among five does not count."""
    seconds: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for record in events(state_folder, event_type="flow_progress", limit=_RECORDS):
        metrics = (record["details"].get("flow_progress") or {}).get("metrics") or {}
        origin, millis = record["origin"], batch_millis(metrics)
        if millis is not None and origin["flow_name"]:
            seconds[origin["flow_name"], origin["dataset_name"] or ""][record["id"]] = millis / 1000
    paces = []
    for (flow, dataset), by_record in sorted(seconds.items()):
        newest = list(by_record.values())[-_NEWEST:]
        paces.append(FlowPace(flow, dataset, len(newest), statistics.median(newest)))
    return paces
