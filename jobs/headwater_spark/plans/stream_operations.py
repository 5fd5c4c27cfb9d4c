"""What Spark can't do on a stream, reported with the user's line and the form that works."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame

from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedStreamOperation
from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes

_DISTINCT_CALLS = {"countDistinct", "count_distinct", "sumDistinct", "sum_distinct"}


def check_stream(frame: DataFrame, flow: Flow) -> None:
    """Raise UnsupportedStreamOperation for the first part of a streaming query that Spark would refuse to start."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    for call in _distinct_aggregates(plan):
        columns = ", ".join(f'"{name}"' for name in _arguments(call))
        counts = class_name(call.aggregateFunction()).endswith(".Count")
        raise UnsupportedStreamOperation(
            f"{flow.name!r} counts distinct values ({call.sql()}): on a stream Spark can't keep all values it has seen.",
            where=call_location(flow.function, _DISTINCT_CALLS, "distinct") or flow.location,
            remedy=f"Write F.approx_count_distinct({columns}) here. {exact_form(_arguments(call)) if counts else ''}For the exact "
            "number without state, declare a @dp.materialized_view over the table that this reads, with dp.read.",
        )


def _distinct_aggregates(plan: Any) -> Iterator[Any]:
    for node in plan_nodes(plan):
        if not class_name(node).endswith(".logical.Aggregate") or not node.isStreaming():
            continue
        for expression in items(node.aggregateExpressions()):
            for part in expression_nodes(expression):
                if class_name(part).endswith(".AggregateExpression") and part.isDistinct():
                    yield part


def exact_form(columns: Sequence[str]) -> str:
    """The remedy that counts the distinct values of columns exactly; like the count it passes over NULLs."""
    values = f'"{columns[0]}"'
    if len(columns) > 1:
        there = " & ".join(f'F.col("{name}").isNotNull()' for name in columns)
        values = f"F.when({there}, F.struct({', '.join(f'{chr(34)}{name}{chr(34)}' for name in columns)}))"
    return (
        f"Or F.size(F.collect_set({values})), which is exact and keeps the values of each open window in the state; "
        "with many values count in two stages (docs/recipes.md#exact-distinct-counts). "
    )


def _arguments(call: Any) -> list[str]:
    arguments = items(call.aggregateFunction().children())
    return [
        str(part.name()) if class_name(part).endswith("AttributeReference") else str(part.sql())
        for part in arguments
    ]


def call_location(function: Callable[..., Any], names: set[str], word: str = "") -> SourceLocation | None:
    """The line of the one call to any of ``names`` (or of the one text with ``word``) in a function, or in its file."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    lines = list(_lines_of(tree, names, word))
    last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    inside = [line for line in lines if code.co_firstlineno <= line <= last]
    matches = inside or lines
    return SourceLocation(code.co_filename, matches[0]) if len(set(matches)) == 1 or inside else None


def _lines_of(tree: ast.AST, names: set[str], word: str) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                # The line of the call's own name, not of the start of the chain.
                yield (
                    (function.end_lineno or function.lineno)
                    if isinstance(function, ast.Attribute)
                    else function.lineno
                )
        elif word and isinstance(node, ast.Constant) and isinstance(node.value, str):
            if word in node.value.lower() and "select" in node.value.lower():
                yield node.lineno
