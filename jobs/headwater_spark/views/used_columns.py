"""Which columns of its sources a query's result depends on."""

from __future__ import annotations

from collections.abc import Iterable

from headwater_spark.views.plan_description import PASSING, Expr, Node


def used_columns(root: Node) -> dict[int, frozenset[int]]:
    """For each leaf of a plan (by its number), the ids of the columns that the result depends on."""
    used: dict[int, frozenset[int]] = {}
    _collect(root, frozenset(root.output), used)
    return used


def _collect(node: Node, wanted: frozenset[int], used: dict[int, frozenset[int]]) -> None:
    if not node.children:
        used[node.number] = wanted & frozenset(node.output)
        return
    if node.kind == "Union":
        positions = [place for place, number in enumerate(node.output) if number in wanted]
        for child in node.children:
            _collect(child, frozenset(child.output[place] for place in positions), used)
        return
    below = _wanted_below(node, wanted)
    for child in node.children:
        _collect(child, below, used)


def _wanted_below(node: Node, wanted: frozenset[int]) -> frozenset[int]:
    if node.kind == "Project":
        return read_by(one for one in node.exprs("projectList") if one.id in wanted)
    if node.kind == "Aggregate":
        outputs = [one for one in node.exprs("aggregateExpressions") if one.id in wanted]
        return read_by((*outputs, *node.exprs("groupingExpressions")))
    if node.kind in PASSING or node.kind in ("Filter", "Join", "Window", "Generate", "LateralJoin"):
        return wanted | read_by(node.expressions)
    return frozenset(number for child in node.children for number in child.output)


def read_by(expressions: Iterable[Expr]) -> frozenset[int]:
    """The ids of the columns that expressions read, also inside of subqueries."""
    references: set[int] = set()
    for one in expressions:
        references |= one.references
        # A subquery may refer to columns around it.
        for part in one.walk():
            for plan in part.plans:
                references |= {
                    number
                    for node in plan.walk()
                    for inner in node.expressions
                    for number in inner.references
                }
    return frozenset(references)
