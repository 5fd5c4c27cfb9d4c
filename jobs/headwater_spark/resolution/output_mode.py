"""Which of Spark's output modes a stream is written in, and by which keys: decided from its plan."""

from __future__ import annotations

from functools import cache, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow, FlowKind
from headwater.definitions.output_kind import OutputKind, QueryMode
from headwater.definitions.sink import SinkKind
from headwater.errors import QueryFailed, UnsupportedArgument
from headwater_spark.java_classes import java_class
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.aggregation_keys import aggregation_keys
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.plans.stateful_queries import check_state

_MODES = {"append": "Append", "update": "Update", "complete": "Complete"}


def output_mode(frame: DataFrame, flow: Flow, dataset: Dataset) -> OutputMode:
    """Decide how a stream is written.

    A table is appended to where Spark can append the query's result. A running aggregation whose grouping keys are
    columns of the result is merged by them (update mode); any other aggregation replaces the table (complete mode).
    After each batch the table then holds what the query gives as a batch.

    Raises:
        QueryFailed: where Spark can do none of it, with its reason.
        UnsupportedArgument: where the flow asks for what its target can't take.
    """
    check_state(frame, flow)
    if flow.changes is not None:
        return OutputMode(OutputKind.CHANGES, tuple(str(key) for key in flow.changes.keys))
    if flow.replacement is not None:
        return _replace(frame, flow)
    # Tried one by one: each refusal is an exception of the JVM, and for most streams the first attempt succeeds.
    reason = cache(partial(_objection, frame))
    if flow.kind is FlowKind.UPDATE:
        return _update_flow(flow, dataset, reason("update"))
    if reason("append") is None:
        return OutputMode()
    if dataset.sink is not None:
        raise QueryFailed(
            f"{flow.name!r} can't append to the sink {dataset.name!r}: {reason('append')}",
            where=flow.location,
            remedy=f'Send the rows that change with @dp.update_flow(target="{dataset.name}").'
            if reason("update") is None
            else "Give the aggregation a watermark and a window over it.",
        )
    keys = aggregation_keys(frame) if reason("update") is None else ()
    if keys:
        return OutputMode(OutputKind.UPDATE, keys)
    if reason("complete") is None:
        return OutputMode(OutputKind.COMPLETE)
    raise QueryFailed(
        f"Spark can't run the query of {flow.name!r} as a stream: {reason('append')}",
        where=flow.location,
        remedy=_way_out(str(reason("append"))),
    )


def _way_out(reason: str) -> str:
    if "join" in reason.lower():
        return (
            'Give both streams a watermark, .withWatermark("event_time", "10 minutes"), and bound the times in the condition: '
            "click_time BETWEEN shown_time AND shown_time + INTERVAL 5 MINUTES. Then Spark knows when no partner can come any "
            "more. Or declare a materialized view over batch reads."
        )
    return "Give the aggregation a watermark and a window over it, or declare a materialized view over a batch read."


def _update_flow(flow: Flow, dataset: Dataset, reason: str | None) -> OutputMode:
    if dataset.sink is None:
        raise UnsupportedArgument(
            f"dp.update_flow is for sinks, and {dataset.name!r} is a table.",
            where=flow.location,
            remedy="Use dp.append_flow: a table merges the changed rows of an aggregation by its grouping keys.",
        )
    if dataset.sink.kind is SinkKind.DELTA:
        raise UnsupportedArgument(
            f"dp.update_flow: a Delta sink can only be appended to, and {dataset.name!r} is one.",
            where=flow.location,
            remedy="Fill a streaming table, which merges by key, or merge in a function under @dp.foreach_batch_sink.",
        )
    if reason is not None:
        raise QueryFailed(
            f"Spark can't run the query of {flow.name!r} in update mode: {reason}",
            where=flow.location,
            remedy="Use dp.append_flow.",
        )
    return OutputMode(OutputKind.UPDATE)


def _replace(frame: DataFrame, flow: Flow) -> OutputMode:
    assert flow.replacement is not None
    columns = {name.lower(): name for name in frame.columns}
    needed = (*flow.replacement.keys, flow.replacement.sequence)
    missing = [name for name in needed if name.lower() not in columns]
    if missing:
        raise QueryFailed(
            f"{flow.name!r} is to replace rows by the column {missing[0]!r}, which its query does not return.",
            where=flow.location,
            remedy=f"It returns: {', '.join(frame.columns)}.",
        )
    reason = _objection(frame, "append")
    if reason is not None:
        raise QueryFailed(
            f"Spark can't run the query of {flow.name!r} as a stream of rows: {reason}",
            where=flow.location,
            remedy="Leave the aggregation out, or leave replace_using out: an aggregation is merged by its own keys.",
        )
    return OutputMode(OutputKind.REPLACE, tuple(columns[key.lower()] for key in flow.replacement.keys))


def check_alone(flow: Flow, mode: OutputMode, dataset: Dataset, flows: int) -> None:
    """Raise QueryFailed where a flow would overwrite what another flow of the same table wrote."""
    if flows > 1 and mode.kind.is_aggregation:
        raise QueryFailed(
            f"{flow.name!r} keeps {dataset.name!r} equal to an aggregation, and other flows write to that table too: "
            "they would overwrite each other's rows.",
            where=flow.location,
            remedy="Union the streams before the aggregation, or give each aggregation a table of its own.",
        )


def _objection(frame: DataFrame, mode: QueryMode) -> str | None:
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - Spark's own check has no public face in Python
    modes = java_class(jvm, "org.apache.spark.sql.streaming.OutputMode")
    checker = java_class(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    try:
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        checker.checkForStreaming(plan, getattr(modes, _MODES[mode])())
    except AnalysisException as error:
        return describe(error).partition(": ")[2]
    return None
