"""The stateful operators of a query, as texts that are stable from run to run."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes, simple_name

# Ids of columns, and addresses of objects, differ from run to run.
_PASSING = re.compile(r"#\d+L?|@[0-9a-f]{4,}|-T\d+ms")
_KEYS = {"Deduplicate": "keys", "DeduplicateWithinWatermark": "keys", "Aggregate": "groupingExpressions"}
_WHOLE = {
    "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState", "TransformWithState", "TransformWithStateInPySpark",
    "GlobalLimit", "Distinct",
}  # fmt: skip


def state_plan(frame: DataFrame) -> tuple[str, ...]:
    """One text for each operator that keeps state: its kind, its keys with their types, its aggregates.

    Spark finds a change of these by itself only where a type or the number of operators changes; grouping by another
    column of the same type goes unnoticed, and mixes two meanings in one state.
    """
    if not frame.isStreaming:
        return ()
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public face in Python
    return tuple(text for node in plan_nodes(plan) if node.isStreaming() and (text := _operator(node)))


def state_times(frame: DataFrame | None) -> tuple[str, ...]:
    """The columns with times that the first operator with state is given: those by which a watermark could free it."""
    if frame is None or not frame.isStreaming:
        return ()
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    node = next((node for node in plan_nodes(plan) if node.isStreaming() and _operator(node)), None)
    if node is None:
        return ()
    columns = [column for child in items(node.children()) for column in items(child.output())]
    times = [
        str(column.name())
        for column in columns
        if str(column.dataType().simpleString()).startswith("timestamp")
    ]
    return tuple(dict.fromkeys(times))


def _operator(node: Any) -> str | None:
    kind = simple_name(node)
    if kind in _KEYS:
        keys = [_typed(key) for key in items(getattr(node, _KEYS[kind])().toSeq())]
        return f"{kind}({', '.join(keys)})" + (_functions(node) if kind == "Aggregate" else "")
    if kind in _WHOLE:
        return kind
    if kind == "Join" and node.left().isStreaming() and node.right().isStreaming():
        return f"Join({node.joinType().toString()}, {_spelled(node.condition())})"
    return None


def _functions(node: Any) -> str:
    functions = [
        _spelled(part.aggregateFunction())
        for expression in items(node.aggregateExpressions().toSeq())
        for part in expression_nodes(expression)
        if class_name(part).endswith(".AggregateExpression")
    ]
    return f" {', '.join(functions)}" if functions else ""


def _typed(expression: Any) -> str:
    return f"{_spelled(expression)}: {expression.dataType().simpleString()}"


def _spelled(value: Any) -> str:
    return _PASSING.sub("", str(value.toString()))
