"""Recipes for plans that are made from a query's own: which of its operators, over which rows of its leaves.

Decision 0162.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headwater_spark.views.join_conditions import conjuncts, join_condition
from headwater_spark.views.plan_description import SET_OPERATIONS, Node
from headwater_spark.views.used_columns import read_by


class Rows(StrEnum):
    """Which rows of a leaf."""

    CHANGED = "changed"
    EVER = "ever"
    # Those of the files that the part of the view that is recomputed needs.
    NEEDED = "needed"


@dataclass(frozen=True)
class Leaf:
    """Rows of the leaf with this number."""

    number: int
    rows: Rows


@dataclass(frozen=True)
class Whole:
    """The operator with this number and all below it, as they are."""

    number: int


@dataclass(frozen=True)
class Over:
    """The operator with this number over other rows, one recipe for each of its inputs."""

    number: int
    children: tuple[Recipe, ...]


@dataclass(frozen=True)
class Columns:
    """Of a Project or Aggregate, the expressions at these places of its output, over other rows."""

    number: int
    places: tuple[int, ...]
    child: Recipe


@dataclass(frozen=True)
class Joined:
    """A join of the operator with this number, of another type, with those parts of its condition."""

    number: int
    how: str
    left: Recipe
    right: Recipe
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Renamed:
    """The columns ``old`` under the ids ``new``, of the operator with this number (a branch of a union)."""

    number: int
    old: tuple[int, ...]
    new: tuple[int, ...]
    child: Recipe


@dataclass(frozen=True)
class Together:
    """All rows of several, whose columns are in one order."""

    parts: tuple[Recipe, ...]


@dataclass(frozen=True)
class Padded:
    """The columns ``ids``, in this order; those of ``nulls`` are NULL, whatever the rows have."""

    ids: tuple[int, ...]
    nulls: frozenset[int]
    child: Recipe


Recipe: TypeAlias = Leaf | Whole | Over | Columns | Joined | Renamed | Together | Padded


def rows_read(recipe: Recipe) -> int:
    """How many times a recipe reads rows besides those that changed."""
    match recipe:
        case Leaf(_, rows):
            return int(rows is Rows.EVER)
        case Whole():
            return 1
        case Over(_, parts) | Together(parts):
            return sum(map(rows_read, parts))
        case Joined():
            return rows_read(recipe.left) + rows_read(recipe.right)
        case Columns() | Renamed() | Padded():
            return rows_read(recipe.child)


def columns_read(  # noqa: PLR0911 - one return a kind of recipe
    recipe: Recipe, nodes: Mapping[int, Node]
) -> frozenset[int]:
    """The ids of all columns that the operators of a recipe read; those that it hands on unread are not among them.

    Args:
        nodes: the plan's operators, by their numbers.
    """
    match recipe:
        case Leaf() | Whole():
            return frozenset()
        case Over(number, children):
            node = nodes[number]
            by_place = node.kind in SET_OPERATIONS or node.kind == "Union"
            own = (n for child in node.children for n in child.output) if by_place else ()
            return read_by(node.expressions) | frozenset(own) | _all_read(children, nodes)
        case Columns(number, places, child):
            node = nodes[number]
            outputs = node.exprs("projectList" if node.kind == "Project" else "aggregateExpressions")
            return read_by(outputs[place] for place in places) | columns_read(child, nodes)
        case Joined(number, _, left, right, places):
            parts = conjuncts(join_condition(nodes[number]))
            return read_by(parts[place] for place in places) | _all_read((left, right), nodes)
        case Renamed(_, old, _, child):
            return frozenset(old) | columns_read(child, nodes)
        case Padded(ids, _, child):
            return frozenset(ids) | columns_read(child, nodes)
        case Together(parts):
            return _all_read(parts, nodes)


def _all_read(recipes: Iterable[Recipe], nodes: Mapping[int, Node]) -> frozenset[int]:
    return frozenset[int]().union(*(columns_read(one, nodes) for one in recipes))


def renamed_branch(union: Node, branch: Node, places: Collection[int], recipe: Recipe) -> Recipe:
    """Rows of a branch of a union, with the union's ids of the columns at these places."""
    old = tuple(branch.output[place] for place in places)
    new = tuple(union.output[place] for place in places)
    return Renamed(branch.number, old, new, recipe)


def over_leaves(node: Node, leaves: Collection[int]) -> Recipe:
    """A plan as it is, with other rows of the leaves that have these numbers."""
    if node.number in leaves:
        return Leaf(node.number, Rows.NEEDED)
    if not any(below.number in leaves for below in node.leaves):
        return Whole(node.number)
    return Over(node.number, tuple(over_leaves(child, leaves) for child in node.children))
