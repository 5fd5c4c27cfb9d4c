"""Views whose new rows come from the new rows of one source alone: they are appended, or merged into their groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headwater_spark.views.plan_description import PASSING, Expr, Node
from headwater_spark.views.recipes import Leaf, Over, Recipe, Renamed, Rows, Whole

# Which sides of a join may get new rows while what was there stays.
_GROWING_SIDES = {
    "Inner": (0, 1), "Cross": (0, 1), "LeftOuter": (0,), "LeftSemi": (0,), "LeftAnti": (0,), "RightOuter": (1,),
}  # fmt: skip


class Merging(StrEnum):
    """How a column of new groups goes into the one that is there."""

    KEY = "key"
    COUNT = "count"
    SUM = "sum"
    LEAST = "least"
    GREATEST = "greatest"


_MERGED = {"Count": Merging.COUNT, "Sum": Merging.SUM, "Min": Merging.LEAST, "Max": Merging.GREATEST}


@dataclass(frozen=True)
class Grouped:
    """The groups of new rows: a recipe for them, and how each column of the result is merged."""

    recipe: Recipe
    columns: tuple[Merging, ...]


def appended(root: Node, leaf: int) -> Recipe | None:  # noqa: PLR0911 - one return a kind of operator
    """The rows that new rows of a leaf add to the result; None where they may change or remove rows that are there."""
    if root.number == leaf:
        return Leaf(leaf, Rows.CHANGED)
    side = next((place for place, child in enumerate(root.children) if _is_below(child, leaf)), None)
    if side is None:
        return None
    below = appended(root.children[side], leaf)
    if below is None:
        return None
    if root.kind in PASSING or root.kind in ("Project", "Filter", "Generate", "LateralJoin", "Expand"):
        return Over(root.number, (below,))
    if root.kind == "Join" and side in _GROWING_SIDES.get(root.join_type, ()):
        return Over(
            root.number,
            tuple(
                below if place == side else Whole(child.number) for place, child in enumerate(root.children)
            ),
        )
    if root.kind == "Union":
        branch = root.children[side]
        return Renamed(branch.number, branch.output, root.output, below)
    return None


def grouped(root: Node, leaf: int) -> Grouped | None:
    """The groups that new rows of a leaf make, where groups that are there can be brought up to date from them alone.

    Without a key all rows are one group, which is always there.
    """
    passed = list(root.output)
    node, above = root, []
    while node.kind in PASSING or node.kind == "Project":
        if node.kind == "Project":
            sources = {one.id: _plain_reference(one) for one in node.exprs("projectList")}
            passed = [number for number in (sources.get(number) for number in passed) if number is not None]
        above.append(node)
        node = node.children[0]
    if node.kind != "Aggregate" or len(passed) != len(root.output):
        return None
    outputs = {one.id: one for one in node.exprs("aggregateExpressions")}
    keys = node.exprs("groupingExpressions")
    columns = [_merging(outputs[number], keys) for number in passed if number in outputs]
    covered = {
        place
        for number in passed
        for place, key in enumerate(keys)
        if number in outputs and same(_unnamed(outputs[number]), key)
    }
    below = appended(node.children[0], leaf)
    merges = [one for one in columns if one is not None]
    if below is None or len(covered) < len(keys) or len(merges) < len(root.output):
        return None
    recipe: Recipe = Over(node.number, (below,))
    for one in reversed(above):
        recipe = Over(one.number, (recipe,))
    return Grouped(recipe, tuple(merges))


def same(one: Expr, other: Expr) -> bool:
    """Whether two expressions are the same by their text: the names of columns don't count, their ids do."""
    if one.kind == "AttributeReference" or other.kind == "AttributeReference":
        return one.kind == other.kind and one.id == other.id
    return (
        one.kind == other.kind
        and _said(one) == _said(other)
        and not one.has_subquery
        and len(one.children) == len(other.children)
        and all(same(first, second) for first, second in zip(one.children, other.children, strict=True))
    )


def _said(one: Expr) -> str:
    return repr(sorted((key, repr(value)) for key, value in one.fields.items() if key != "resultId"))


def _merging(output: Expr, keys: tuple[Expr, ...]) -> Merging | None:
    inner = _unnamed(output)
    if any(same(inner, key) for key in keys):
        return Merging.KEY
    # A second part would be a FILTER clause.
    if inner.kind != "AggregateExpression" or inner.fields.get("isDistinct") or len(inner.children) != 1:
        return None
    return _MERGED.get(inner.children[0].kind)


def _unnamed(one: Expr) -> Expr:
    return one.children[0] if one.kind == "Alias" else one


def _plain_reference(one: Expr) -> int | None:
    inner = _unnamed(one)
    return inner.id if inner.kind == "AttributeReference" else None


def _is_below(node: Node, leaf: int) -> bool:
    return any(below.number == leaf for below in node.walk())
