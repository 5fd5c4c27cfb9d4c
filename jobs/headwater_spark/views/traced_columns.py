"""How rows are followed through operators that make columns of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from headwater_spark.views.inexact_columns import names_group
from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import Columns, Over, Padded
from headwater_spark.views.traced_answers import Answer, NotTraceable

Ids: TypeAlias = frozenset[int]
# Follows rows through the operator below, for columns that are wanted and columns that are wished for.
Follow: TypeAlias = Callable[[Node, Ids, Ids], Answer]


def chosen_columns(node: Node, wanted: Ids, wished: Ids, follow: Follow, inexact: Ids) -> Answer:
    """A Project, or an Aggregate of which only what its groups have in common is known."""
    outputs = node.exprs("projectList" if node.kind == "Project" else "aggregateExpressions")
    chosen = [
        place
        for place in sorted(place for number in wanted | wished for place in node.places.get(number, ()))
        if not outputs[place].has("AggregateExpression", "PythonUDAF")
        and not outputs[place].has_subquery
        and (
            node.kind == "Project" or names_group(outputs[place], node.exprs("groupingExpressions"), inexact)
        )
    ]
    needed = frozenset(
        n for place in chosen if outputs[place].id in wanted for n in outputs[place].references
    )
    useful = frozenset(n for place in chosen for n in outputs[place].references)
    below = follow(node.children[0], needed, useful)
    places = tuple(place for place in chosen if outputs[place].references <= below.known)
    known = frozenset(one for place in places if (one := outputs[place].id) is not None)
    return Answer(Columns(node.number, places, below.recipe), known)


def expanded(node: Node, wanted: frozenset[int], wished: frozenset[int], follow: Follow) -> Answer:
    """Each row of the input makes some rows of the output, of which some columns are those of the input."""
    rows = node.projections
    if not rows or any(one.has_subquery for row in rows for one in row):
        raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")
    made = {
        number: frozenset(n for row in rows for n in row[place].references)
        for place, number in enumerate(node.output)
    }
    needed = frozenset[int]().union(*made.values())
    wants = frozenset(n for number in wanted for n in made.get(number, ()))
    below = follow(node.children[0], wants, wished | needed)
    missing = needed - below.known  # it makes other columns than those that are wanted
    child = Padded(tuple(sorted(needed)), missing, below.recipe) if missing else below.recipe
    known = frozenset(number for number in made if made[number] <= below.known)
    return Answer(Over(node.number, (child,)), known)
