"""Recipes for plans that are made from a query's own: which of its operators, over which rows of its leaves.

Decision 0162.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Rows(StrEnum):
    """Which rows of a leaf."""

    CHANGED = "changed"
    EVER = "ever"


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
