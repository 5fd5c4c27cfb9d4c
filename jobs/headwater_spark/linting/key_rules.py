"""Keys: HW401."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.definitions.finding import Finding
from headwater_spark.linting.flow_case import FlowCase
from headwater_spark.plans.plan_walk import CURRENT_TIME, class_name, expression_nodes, items, simple_name


def unsteady_keys(case: FlowCase) -> Iterator[Finding]:
    """HW401."""
    unsteady = _unsteady_columns(case.nodes)
    for node in case.nodes:
        for what, key, calls in _keys(node):
            function = next((f for part in expression_nodes(key) if (f := _source(part, unsteady))), None)
            if function is not None:
                yield case.find(
                    "HW401",
                    f"A key of the {what} comes from {function}, which differs from run to run: a batch that is repeated "
                    "after a failure has other keys, and nothing matches.",
                    "Take the key from the data: an id that came with the row, or a hash over its columns (sha2).",
                    calls,
                )


def _unsteady_columns(nodes: list[Any]) -> dict[int, str]:
    """Columns that depend on chance or the clock, by the plan's id of them, with the function that they come from."""
    unsteady: dict[int, str] = {}
    for node in reversed(nodes):  # what is below comes first
        if not class_name(node).endswith(".Project"):
            continue
        for expression in items(node.projectList()):
            if not class_name(expression).endswith(".Alias"):
                continue
            function = next(
                (f for part in expression_nodes(expression) if (f := _source(part, unsteady))), None
            )
            if function is not None:
                unsteady[int(expression.exprId().id())] = function
    return unsteady


def _source(part: Any, unsteady: dict[int, str]) -> str | None:
    kind = simple_name(part)
    if kind == "AttributeReference":
        return unsteady.get(int(part.exprId().id()))
    if kind in CURRENT_TIME or (not items(part.children()) and not part.deterministic()):
        return f"{part.prettyName()}()"
    return None


def _keys(node: Any) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    kind = simple_name(node)
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        for key in items(node.keys()):
            yield "deduplication", key, ("dropDuplicates", "dropDuplicatesWithinWatermark", "drop_duplicates")
    elif kind == "Aggregate":
        for key in items(node.groupingExpressions()):
            yield "aggregation", key, ("groupBy", "groupby", "rollup", "cube")
    elif kind == "Join" and node.condition().isDefined():
        for part in expression_nodes(node.condition().get()):
            if simple_name(part) in ("EqualTo", "EqualNullSafe"):
                yield "join", part, ("join",)
