"""The columns of a running aggregation's result by which it can be merged into a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headwater_spark.plans.plan_walk import items, simple_name

# Spark marks the struct of a time window with this.
_WINDOW_MARK = "spark.timeWindow"


def aggregation_keys(frame: DataFrame) -> tuple[str, ...]:
    """The result's columns that hold the grouping keys; empty where the result can't be merged by them.

    This is the case where there are no keys, where one is missing from the result, and where something above the aggregation
    removes rows or depends on more than the row (a filter would leave rows in the table that no longer pass).
    A time window is identified by itself, its start or its end.
    """
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    columns = items(plan.output())
    projections: list[list[Any]] = []
    while (kind := simple_name(plan)) in ("Project", "SubqueryAlias"):
        if kind == "Project":
            projections.append(items(plan.projectList()))
        plan = plan.child()
    if simple_name(plan) != "Aggregate" or not items(plan.groupingExpressions()):
        return ()
    outputs = items(plan.aggregateExpressions())
    carried = [_carriers(key, outputs) for key in items(plan.groupingExpressions())]
    for expressions in reversed(projections):
        carried = [_passed_on(ids, expressions) for ids in carried]
    names = {_id(column): str(column.name()) for column in columns}
    order = list(names)
    key_positions = [sorted(order.index(i) for i in ids if i in names) for ids in carried]
    if not all(key_positions):
        return ()
    return tuple(dict.fromkeys(names[order[positions[0]]] for positions in key_positions))


def _carriers(key: Any, outputs: list[Any]) -> set[int]:
    """The ids of the aggregation's output columns that are the key."""
    carriers = set()
    for output in outputs:
        inner = output.child() if simple_name(output) == "Alias" else output
        if inner.semanticEquals(key) or (_is_bound_of_window(inner) and inner.child().semanticEquals(key)):
            carriers.add(_id(output))
    return carriers


def _passed_on(ids: set[int], expressions: list[Any]) -> set[int]:
    """The ids under which a projection passes columns on."""
    passed = set()
    for expression in expressions:
        inner = expression.child() if simple_name(expression) == "Alias" else expression
        if _is_bound_of_window(inner):
            inner = inner.child()
        if simple_name(inner) == "AttributeReference" and _id(inner) in ids:
            passed.add(_id(expression))
    return passed


def _is_bound_of_window(expression: Any) -> bool:
    if simple_name(expression) != "GetStructField" or simple_name(expression.child()) != "AttributeReference":
        return False
    return bool(expression.child().metadata().contains(_WINDOW_MARK)) and str(
        expression.extractFieldName()
    ) in ("start", "end")


def _id(expression: Any) -> int:
    return int(expression.exprId().id())
