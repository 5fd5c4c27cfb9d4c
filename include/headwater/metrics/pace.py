"""How long the newest batches took."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headwater.definitions.flow_settings import (
    STREAM_INTERVAL,
    TRIGGER_INTERVAL,
    is_real_time,
    trigger_interval,
)
from headwater.definitions.trigger import AvailableNow, ProcessingTime
from headwater.event_log.details import batch_millis
from headwater.event_log.reader import events
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.place import Place

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


def flow_paces(state_folder: Place) -> list[FlowPace]:
    """The pace of each flow that has run batches, by name; one slow batch among five does not count."""
    seconds: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    # Updates without news have records, too: enough of them, and there would be no batch left.
    for record in events(state_folder, event_type="flow_progress", containing='_ms"', limit=_RECORDS):
        metrics = (record["details"].get("flow_progress") or {}).get("metrics") or {}
        origin, millis = record["origin"], batch_millis(metrics)
        if millis is not None and origin["flow_name"]:
            seconds[origin["flow_name"], origin["dataset_name"] or ""][record["id"]] = millis / 1000
    paces = []
    for (flow, dataset), by_record in sorted(seconds.items()):
        newest = list(by_record.values())[-_NEWEST:]
        paces.append(FlowPace(flow, dataset, len(newest), statistics.median(newest)))
    return paces


def flow_interval(
    project: PipelineProject, manifest: Manifest, target: str, spark_conf: Mapping[str, str]
) -> tuple[float | None, str]:
    """Seconds between two looks of a flow, and the key that says so; None where the pipeline has no such trigger.

    Args:
        target: the table that the flow writes.
        spark_conf: settings of the flow itself.

    """
    trigger = project.spec.trigger
    if isinstance(trigger, AvailableNow) or is_real_time(
        spark_conf
    ):  # its batches last as long as they are told to
        return None, "trigger"
    try:
        properties = manifest.dataset(target).table_properties
    except KeyError:
        properties = {}
    places = {
        "spark_conf": spark_conf,
        "table_properties": properties,
        "configuration": project.configuration,
        "spark": project.spec.spark,
    }
    given = trigger_interval(*places.values())
    place = next((name for name, settings in places.items() if TRIGGER_INTERVAL in settings), "trigger")
    usual = trigger.interval if isinstance(trigger, ProcessingTime) else STREAM_INTERVAL
    return (given or usual).total_seconds(), place


def flow_intervals(project: PipelineProject, manifest: Manifest) -> dict[str, float]:
    """Seconds between two looks of each stream, by flow; empty where the trigger is another."""
    settings: dict[str, Mapping[str, str]] = {}
    for record in events(project.state_folder, event_type="flow_definition", limit=_RECORDS):
        definition = record["details"].get("flow_definition") or {}
        settings[record["origin"]["flow_name"] or ""] = definition.get("spark_conf") or {}
    intervals = {
        flow.name: flow_interval(project, manifest, flow.target, settings.get(flow.name, {}))[0]
        for flow in manifest.flows
        if flow.streaming and not flow.once
    }
    return {name: seconds for name, seconds in intervals.items() if seconds is not None}
