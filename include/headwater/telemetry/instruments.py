"""The metrics that an update sends while it runs: names, units, meanings. Names follow OpenTelemetry's conventions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How values of an instrument add up."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Instrument:
    """One metric. ``unit``: in UCUM's spelling, as OpenTelemetry wants it; ``attributes``: beside ``pipeline``."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: tuple[str, ...]

    @property
    def prometheus_name(self) -> str:
        """What the metric is called once a collector has handed it to Prometheus."""
        words = {"s": "_seconds", "By": "_bytes", "ms": "_milliseconds"}
        ending = words.get(self.unit, "") + ("_total" if self.kind is Kind.COUNTER else "")
        return self.name.replace(".", "_") + ending


_FLOW = ("dataset", "flow")

UPDATE_ENDS = Instrument(
    "headwater.update.ends", Kind.COUNTER, "{update}", "Updates that ended, by their state.", ("state",)
)
UPDATE_DURATION = Instrument(
    "headwater.update.duration", Kind.HISTOGRAM, "s", "From an update's request to its end.", ("state",)
)
FLOW_ENDS = Instrument(
    "headwater.flow.ends", Kind.COUNTER, "{flow}", "Ends of flows, by their state.", (*_FLOW, "state")
)
FLOW_ROWS = Instrument(
    "headwater.flow.rows", Kind.COUNTER, "{row}",
    "Rows of a flow: input, output, dropped, quarantined.", (*_FLOW, "kind"),
)  # fmt: skip
FLOW_BATCHES = Instrument(
    "headwater.flow.batches", Kind.COUNTER, "{batch}", "Micro-batches that were committed.", _FLOW
)
BATCH_DURATION = Instrument(
    "headwater.flow.batch.duration", Kind.HISTOGRAM, "s", "How long a micro-batch took by the clock.", _FLOW
)
RULE_ROWS = Instrument(
    "headwater.rule.rows", Kind.COUNTER, "{row}",
    "Rows that passed or failed an expectation.", ("dataset", "rule", "outcome"),
)  # fmt: skip
# What a batch's record says about the flow at that moment, by the name in the record.
FLOW_GAUGES = {
    "backlog_records": Instrument(
        "headwater.flow.backlog.records",
        Kind.GAUGE,
        "{row}",
        "Records not read yet after the newest batch.",
        _FLOW,
    ),
    "backlog_bytes": Instrument(
        "headwater.flow.backlog.size", Kind.GAUGE, "By", "Bytes not read yet after the newest batch.", _FLOW
    ),
    "backlog_files": Instrument(
        "headwater.flow.backlog.files",
        Kind.GAUGE,
        "{file}",
        "Files not read yet after the newest batch.",
        _FLOW,
    ),
    "state_rows": Instrument(
        "headwater.flow.state.rows", Kind.GAUGE, "{row}", "Rows in the state of a stateful flow.", _FLOW
    ),
    "state_bytes": Instrument(
        "headwater.flow.state.size", Kind.GAUGE, "By", "Bytes in the state of a stateful flow.", _FLOW
    ),
    "watermark_lag_seconds": Instrument(
        "headwater.flow.watermark.lag", Kind.GAUGE, "s", "How far the watermark is behind the clock.", _FLOW
    ),
}

INSTRUMENTS = (
    *(UPDATE_ENDS, UPDATE_DURATION, FLOW_ENDS, FLOW_ROWS, FLOW_BATCHES, BATCH_DURATION, RULE_ROWS),
    *FLOW_GAUGES.values(),
)
