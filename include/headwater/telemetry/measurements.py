"""What the records of an event log say, as measurements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from headwater.event_log.details import FlowStatus, UpdateState, batch_millis
from headwater.event_log.event import Event
from headwater.event_log.flow_result import record_counts
from headwater.telemetry import instruments
from headwater.telemetry.instruments import Instrument


@dataclass(frozen=True)
class Measurement:
    """A value for an instrument; ``attributes`` has what the instrument names, and the pipeline."""

    instrument: Instrument
    value: float
    attributes: Mapping[str, str]


@dataclass
class Measuring:
    """Turns records into measurements, in the order of the log; knows when updates began and which flows had batches."""

    _begun: dict[str, datetime] = field(default_factory=dict)
    _with_batches: set[tuple[str, str]] = field(default_factory=set)

    def of(self, event: Event) -> Iterator[Measurement]:
        """What one record says."""
        update, pipeline = event.origin.update_id, event.origin.pipeline_id
        details = json.loads(event.details)
        if event.event_type == "create_update":
            self._begun[update] = event.timestamp
        elif event.event_type == "update_progress":
            yield from self._update(event, UpdateState(details["update_progress"]["state"]), pipeline)
        elif event.event_type == "flow_progress":
            yield from self._flow(event, details, {"pipeline": pipeline, **_flow_attributes(event)})

    def _update(self, event: Event, state: UpdateState, pipeline: str) -> Iterator[Measurement]:
        if not state.terminal:
            return
        about = {"pipeline": pipeline, "state": str(state)}
        yield Measurement(instruments.UPDATE_ENDS, 1, about)
        begun = self._begun.pop(event.origin.update_id, None)
        if begun is not None:
            seconds = max(0.0, (event.timestamp - begun).total_seconds())
            yield Measurement(instruments.UPDATE_DURATION, seconds, about)
        self._with_batches = {one for one in self._with_batches if one[0] != event.origin.update_id}

    def _flow(
        self, event: Event, details: Mapping[str, Any], about: Mapping[str, str]
    ) -> Iterator[Measurement]:
        body = details["flow_progress"]
        status, key = FlowStatus(body["status"]), (event.origin.update_id, event.origin.flow_name or "")
        counts = record_counts({"details": details}, any_batch=key in self._with_batches)
        if status is FlowStatus.RUNNING and counts is not None:
            self._with_batches.add(key)
            yield Measurement(instruments.FLOW_BATCHES, 1, about)
            yield from _batch(body.get("metrics", {}), about)
        for kind, rows in asdict(counts).items() if counts else ():
            yield Measurement(instruments.FLOW_ROWS, rows, {**about, "kind": kind.removesuffix("_rows")})
        yield from _rules(body.get("data_quality", {}), about)
        if status.terminal:
            yield Measurement(instruments.FLOW_ENDS, 1, {**about, "state": str(status)})


def _flow_attributes(event: Event) -> dict[str, str]:
    return {"dataset": event.origin.dataset_name or "", "flow": event.origin.flow_name or ""}


def _batch(metrics: Mapping[str, Any], about: Mapping[str, str]) -> Iterator[Measurement]:
    millis = batch_millis(metrics)
    if millis is not None:
        yield Measurement(instruments.BATCH_DURATION, millis / 1000, about)
    for name, instrument in instruments.FLOW_GAUGES.items():
        if metrics.get(name) is not None:
            yield Measurement(instrument, float(metrics[name]), about)


def _rules(quality: Mapping[str, Any], about: Mapping[str, str]) -> Iterator[Measurement]:
    for rule in quality.get("expectations") or ():
        where = {
            "pipeline": about["pipeline"],
            "dataset": rule.get("dataset") or about["dataset"],
            "rule": rule["name"],
        }
        for outcome in ("passed", "failed"):
            rows = int(rule.get(f"{outcome}_records") or 0)
            yield Measurement(instruments.RULE_ROWS, rows, {**where, "outcome": outcome})
