"""What Spark's real-time mode permits, read from a flow's plan.

Spark 4.2 lists the sinks and the physical operators that it permits (``RealTimeModeAllowlist``), and the options of Kafka that it does not
(``KafkaMicroBatchStream.planInputPartitions``). It looks at them when the first batch runs; the same is known from the analysed plan.

Decision 0189.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from headwater.definitions.flow import FlowKind
from headwater.definitions.sink import Sink, SinkKind
from headwater_spark.plans.plan_walk import expression_nodes, items, pair_of, plan_nodes, simple_name

_KAFKA = "kafka"
# Operators of an analysed plan that become permitted physical ones, or none. A join has a static side, which Spark has to be able
# to broadcast: whether it is small enough is known when the query runs.
_PERMITTED = {
    "Project", "Filter", "Generate", "Expand", "Union", "EventTimeWatermark", "SubqueryAlias", "View", "CollectMetrics",
    "StreamingRelationV2", "Join", "ResolvedHint", "WithCTE", "CTERelationDef", "CTERelationRef",
}  # fmt: skip
_PYTHON = {"PythonUDF", "PythonUDAF", "PythonUDTF"}
# By their names in lower case.
_OPTIONS = {
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "minoffsetspertrigger": "minOffsetsPerTrigger",
    "maxtriggerdelay": "maxTriggerDelay",
    "minpartitions": "minPartitions",
    "endingtimestamp": "endingTimestamp",
}


@dataclass(frozen=True)
class StreamRead:
    """A stream in a plan: its format, and its options with their names in lower case."""

    format: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class RealTimePlan:
    """As much of a streaming plan as real-time mode depends on. ``operators``: the streaming ones; ``python``: functions of Python."""

    streams: tuple[StreamRead, ...] = ()
    operators: frozenset[str] = frozenset()
    joins_streams: bool = False
    python: bool = False


def read_plan(frame: DataFrame, stubs: Path) -> RealTimePlan:
    """Read the analysed plan of a flow. ``stubs``: where the folders are that stand for the pipeline's own tables."""
    streams: list[StreamRead] = []
    operators: set[str] = set()
    joins_streams = python = False
    for node in plan_nodes(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001 - no public face in Python
        if not node.isStreaming():
            continue
        kind = simple_name(node)
        operators.add(kind)
        if kind == "StreamingRelationV2":
            options = {str(key).lower(): str(value) for key, value in dict(node.extraOptions()).items()}
            streams.append(StreamRead(str(node.sourceName()).lower(), options))
        elif kind == "StreamingRelation":
            streams.append(StreamRead(_format(node.dataSource(), stubs), {}))
        elif kind == "Join":
            joins_streams |= bool(node.left().isStreaming() and node.right().isStreaming())
        python |= any(
            simple_name(part) in _PYTHON
            for expression in items(node.expressions().toSeq())
            for part in expression_nodes(expression)
        )
    return RealTimePlan(tuple(streams), frozenset(operators), joins_streams, python)


def _format(source: Any, stubs: Path) -> str:
    options = dict(pair_of(pair) for pair in items(source.options().toSeq()))
    path = Path(options.get("path", "").removeprefix("file:"))
    return f"the table {path.name!r}" if path.is_relative_to(stubs) else str(source.className()).lower()


def real_time_objection(plan: RealTimePlan, kind: FlowKind, sink: Sink | None) -> tuple[str, str] | None:
    """Why Spark does not run a flow in real-time mode, and what to do; None where it does."""
    return _of_target(kind, sink) or _of_streams(plan.streams) or _of_query(plan)


def _of_target(kind: FlowKind, sink: Sink | None) -> tuple[str, str] | None:
    if sink is None or sink.kind is not SinkKind.KAFKA:
        what = "a table" if sink is None else f"a sink of the format {sink.format!r}"
        return (
            f"it writes to Kafka, and this flow writes to {what}",
            "Send the rows to a sink with the format kafka",
        )
    if kind is not FlowKind.UPDATE:
        return "it writes in update mode", "Declare the flow with @dp.update_flow"
    return None


def _of_streams(streams: Sequence[StreamRead]) -> tuple[str, str] | None:
    others = sorted({stream.format for stream in streams} - {_KAFKA})
    if others or not streams:
        what = others[0] if others else "nothing"
        return f"it reads from Kafka alone, and this flow reads {what}", "Read the topic itself"
    if len({tuple(sorted(stream.options.items())) for stream in streams}) < len(streams):
        return (
            "it reads a source once, and this flow reads one twice",
            "Read it once, and explode what becomes several rows",
        )
    limits = [_OPTIONS[name] for stream in streams for name in stream.options if name in _OPTIONS]
    if limits:
        reason = f"a batch has no end that could be planned, and the option {limits[0]} plans it"
        return reason, f"Take {limits[0]} out"
    return None


def _of_query(plan: RealTimePlan) -> tuple[str, str] | None:
    if plan.python:
        return "it has no functions of Python", "Say it with functions of Spark"
    if plan.joins_streams:
        return "it does not join streams", "Join with a static table, which Spark broadcasts"
    operators = sorted(plan.operators - _PERMITTED)
    if operators:
        return (
            f"it keeps no state and exchanges no rows between partitions, and this flow has the operator {operators[0]}",
            "Permitted are projections, filters, explode, unions and joins with small static tables",
        )
    return None
