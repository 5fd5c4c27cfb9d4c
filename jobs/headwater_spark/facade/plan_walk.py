"""Looking into Spark's query plans through the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation"
# Expressions that hold a plan of their own (``InSubquery`` holds a ``ListQuery``).
_SUBQUERIES = {"ScalarSubquery", "Exists", "ListQuery", "LateralSubquery", "DynamicPruningSubquery"}
_CURRENT_TIME = {
    "CurrentDate",
    "CurrentTimestamp",
    "CurrentTimestampLike",
    "Now",
    "LocalTimestamp",
    "CurrentTime",
}


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(index) for index in range(sequence.length())]


def pair_of(pair: Any) -> tuple[str, str]:
    """A Scala pair as two texts."""
    return str(pair._1()), str(pair._2())  # noqa: SLF001 - the names of a Scala pair's parts


def class_name(node: Any) -> str:
    """The class of a JVM object."""
    return str(node.getClass().getName())


def plan_nodes(plan: Any) -> Iterator[Any]:
    """Every operator of a plan: below it, in its CTEs, and in the subqueries of its expressions."""
    yield plan
    for child in items(plan.children()):
        yield from plan_nodes(child)
    for inner in items(plan.innerChildren()):
        if ".catalyst.plans.logical." in class_name(inner) or ".catalyst.analysis." in class_name(inner):
            yield from plan_nodes(inner)
    for expression in items(plan.expressions().toSeq()):
        for part in expression_nodes(expression):
            if _is_subquery(part):
                yield from plan_nodes(part.plan())


def plan_leaves(plan: Any) -> Iterator[Any]:
    """The leaves of an analysed plan and of the subqueries in its expressions, in the order of the query."""
    yield from items(plan.collectLeaves())
    for subquery in items(plan.subqueriesAll()):
        yield from items(subquery.collectLeaves())


def expression_nodes(expression: Any) -> Iterator[Any]:
    """An expression and all its parts."""
    yield expression
    for child in items(expression.children()):
        yield from expression_nodes(child)


def _is_subquery(expression: Any) -> bool:
    return class_name(expression).rpartition(".")[2] in _SUBQUERIES


def unresolved_relations(plan: Any) -> Iterator[tuple[list[str], bool, int, int]]:
    """The table names of a parsed plan: parts, whether read as a stream, and where in the text (first, last)."""
    for node in plan_nodes(plan):
        if class_name(node) != _UNRESOLVED:
            continue
        origin = node.origin()
        start, stop = origin.startIndex(), origin.stopIndex()
        if start.isDefined() and stop.isDefined():
            yield (
                [str(p) for p in items(node.multipartIdentifier())],
                bool(node.isStreaming()),
                start.get(),
                stop.get(),
            )


def reads_the_clock(plan: Any) -> bool:
    """Whether the result of an analysed plan depends on when it is run, or on chance."""
    for node in plan_nodes(plan):
        for expression in items(node.expressions().toSeq()):
            if not expression.deterministic():
                return True
            if any(
                class_name(part).rpartition(".")[2] in _CURRENT_TIME for part in expression_nodes(expression)
            ):
                return True
    return False
