"""Which rows of a query's result can differ, from which rows of one source differ: as a recipe for a plan.

For each operator there are two questions. *Touched*: a superset of the rows that its output has before and not after, or after
and not before. *All*: a superset of the rows that it has before or after. Both are asked for some columns alone; a column that
can't be answered for is *unknown*. New rows never come from these plans: they say which part of the result is to be
recomputed, by the user's own plan, and too large a part is right as well.

Decision 0162.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headwater_spark.views.plan_description import PASSING, Expr, Node, is_distinct


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


Recipe: TypeAlias = Leaf | Whole | Over | Columns | Joined | Renamed | Together


@dataclass(frozen=True)
class Answer:
    """A recipe, and the ids of the columns that its rows answer for."""

    recipe: Recipe
    known: frozenset[int]


# Follows rows through the operator below, for columns that are wanted and columns that are wished for.
_Follow: TypeAlias = Callable[[Node, frozenset[int], frozenset[int]], Answer]


class NotTraceable(Exception):
    """Rows can't be followed through an operator, for the columns that are wanted."""

    def __init__(self, operator: str, reason: str) -> None:
        super().__init__(reason)
        self.operator = operator
        self.reason = reason


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of a condition that must all be true."""
    if condition is None:
        return []
    if condition.kind == "And":
        return [part for child in condition.children for part in conjuncts(child)]
    return [condition]


def join_condition(node: Node) -> Expr | None:
    """The condition of a join."""
    return next(iter(node.exprs("condition")), None)


@dataclass(frozen=True)
class Tracing:
    """Follows the rows of changed leaves (by their numbers) through one plan."""

    changed: frozenset[int]

    def touched(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        """The touched rows of an operator, where rows of ``leaf`` below it changed.

        Args:
            wanted: the columns without which there is no answer; ``wished``: those that would make it smaller.

        Raises:
            NotTraceable: an operator lets no rows be followed; or a wanted column stays unknown.
        """
        answer = self._touched(node, leaf, wanted, wished | wanted)
        if not wanted <= answer.known:
            raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")
        return answer

    def _touched(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        if node.number == leaf:
            return Answer(Leaf(leaf, Rows.CHANGED), frozenset(node.output))
        if node.kind == "Join":
            return self._touched_join(node, leaf, wanted, wished)
        if node.kind == "Union":
            return self._touched_union(node, leaf, wanted, wished)
        if node.kind == "Window":
            # The other rows of its partition change as well: only what they have in common is known.
            keys = _partition_keys(node)
            below = self._touched(node.children[0], leaf, wanted & keys, keys)
            return Answer(below.recipe, below.known & keys)
        return self._through(
            node, wished, lambda child, want, wish: self._touched(child, leaf, want, wish), wanted
        )

    def _through(self, node: Node, wished: frozenset[int], follow: _Follow, wanted: frozenset[int]) -> Answer:
        """An operator with one input, where a row of the output comes from one row of the input, or from a group of equals."""
        child = node.children[0] if len(node.children) == 1 else None
        if child is None:
            raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")
        if node.kind in PASSING or is_distinct(node):
            return follow(child, wanted, wished)
        if node.kind == "Filter":
            condition = node.exprs("condition")[0]
            below = follow(child, wanted, wished | condition.references)
            usable = condition.references <= below.known and not condition.has_subquery
            return Answer(Over(node.number, (below.recipe,)) if usable else below.recipe, below.known)
        if node.kind == "Generate":
            return self._through_generate(node, wished, follow, wanted)
        if node.kind in ("Project", "Aggregate"):
            return _chosen_columns(node, wanted, wished, follow)
        raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")

    def _through_generate(
        self, node: Node, wished: frozenset[int], follow: _Follow, wanted: frozenset[int]
    ) -> Answer:
        made = frozenset(one.id for one in node.exprs("generatorOutput") if one.id is not None)
        generator = node.exprs("generator")
        needed = frozenset(number for one in generator for number in one.references)
        if node.fields.get("unrequiredChildIndex"):
            raise NotTraceable(node.kind, "a generator drops columns of its input")
        wants_made = bool(made & wanted)
        below = follow(
            node.children[0], wanted - made | (needed if wants_made else frozenset()), wished | needed
        )
        if needed <= below.known:
            return Answer(Over(node.number, (below.recipe,)), below.known | made)
        return below  # every row may come from it: the columns of the input say enough

    # -- joins ---------------------------------------------------------------------------------------------------

    def _touched_join(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        left, right = node.children
        on_left = any(below.number == leaf for below in left.leaves)
        own, other = (left, right) if on_left else (right, left)
        how = node.join_type
        wish = wished | _condition_references(node)
        preserved = {"LeftOuter": left, "LeftSemi": left, "LeftAnti": left, "RightOuter": right}.get(how)
        if how not in ("Inner", "Cross") and preserved is None:
            raise NotTraceable("Join", f"which rows change can't be followed through a join of type {how}")
        if preserved is None or own is preserved:
            below = self._touched(own, leaf, wanted & frozenset(own.output), wish & frozenset(own.output))
            if wanted <= below.known:
                return below  # rows that have no partner are among them, which does no harm
            if preserved is None:
                return self._matched(
                    node, below, self._ever(other, *_part(other, wanted, wish)), own, "Inner"
                )
            if how in ("LeftOuter", "RightOuter") and not self._changes(other):
                whole = Answer(Whole(other.number), frozenset(other.output))
                return self._matched(node, below, whole, own, how, every_part=True)
            raise NotTraceable("Join", f"both sides of a join of type {how} changed")
        # The rows of the preserved side whose partners changed.
        changed = self._touched(own, leaf, frozenset(), wish & frozenset(own.output))
        return self._matched(
            node, self._ever(preserved, *_part(preserved, wanted, wish)), changed, preserved, "LeftSemi"
        )

    def _matched(
        self, node: Node, one: Answer, other: Answer, first: Node, how: str, *, every_part: bool = False
    ) -> Answer:
        """A join of two answers; ``one`` is of the side ``first``."""
        known = one.known | other.known
        parts = conjuncts(join_condition(node))
        usable = [
            place for place, part in enumerate(parts) if part.references <= known and not part.has_subquery
        ]
        if every_part and len(usable) < len(parts):
            raise NotTraceable("Join", "a join's condition reads columns that can't be followed")
        if not any(_is_equality(parts[place], one.known, other.known) for place in usable):
            raise NotTraceable("Join", "a join has no equality that its changed rows could be found by")
        in_order = how == "LeftSemi" or first is node.children[0]
        left, right = (one, other) if in_order else (other, one)
        recipe = Joined(node.number, how, left.recipe, right.recipe, tuple(usable))
        return Answer(recipe, one.known if how == "LeftSemi" else known)

    # -- all rows ------------------------------------------------------------------------------------------------

    def _ever(self, node: Node, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        if not self._changes(node):
            return Answer(Whole(node.number), frozenset(node.output))
        if not node.children:
            return Answer(Leaf(node.number, Rows.EVER), frozenset(node.output))
        if node.kind == "Join":
            return self._ever_join(node, wanted, wished)
        if node.kind == "Union":
            places = [place for place, number in enumerate(node.output) if number in wanted]
            parts = []
            for child in node.children:
                ids = frozenset(child.output[place] for place in places)
                below = self._ever(child, ids, ids)
                if not ids <= below.known:
                    raise NotTraceable("Union", "a branch of a union can't be followed")
                parts.append(_renamed(node, child, places, below.recipe))
            return Answer(Together(tuple(parts)), frozenset(wanted))
        if node.kind == "Window":
            return self._ever(node.children[0], wanted, wished)
        return self._through(node, wished, self._ever, wanted)

    def _ever_join(self, node: Node, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        left, right = node.children
        how = node.join_type
        wish = wished | _condition_references(node)
        preserved = {"LeftOuter": left, "LeftSemi": left, "LeftAnti": left, "RightOuter": right}.get(how)
        if preserved is not None:
            if not wanted <= frozenset(preserved.output):
                raise NotTraceable("Join", f"rows that a join of type {how} fills up can't be followed")
            return self._ever(preserved, *_part(preserved, wanted, wish))
        if how not in ("Inner", "Cross"):
            raise NotTraceable("Join", f"rows can't be followed through a join of type {how}")
        for side in (left, right):
            if wanted <= frozenset(side.output):
                return self._ever(side, *_part(side, wanted, wish))
        one = self._ever(left, *_part(left, wanted, wish))
        return self._matched(node, one, self._ever(right, *_part(right, wanted, wish)), left, "Inner")

    def _touched_union(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        child = next(c for c in node.children if any(below.number == leaf for below in c.leaves))
        chosen = wanted | wished
        pairs = {out: own for out, own in zip(node.output, child.output, strict=True) if out in chosen}
        below = self._touched(
            child, leaf, frozenset(pairs[out] for out in wanted if out in pairs), frozenset(pairs.values())
        )
        places = [
            place for place, out in enumerate(node.output) if out in pairs and pairs[out] in below.known
        ]
        known = frozenset(node.output[place] for place in places)
        return Answer(_renamed(node, child, places, below.recipe), known)

    def _changes(self, node: Node) -> bool:
        return any(below.number in self.changed for below in node.leaves)


def _chosen_columns(node: Node, wanted: frozenset[int], wished: frozenset[int], follow: _Follow) -> Answer:
    """A Project, or an Aggregate of which only what its groups have in common is known."""
    name = "projectList" if node.kind == "Project" else "aggregateExpressions"
    outputs = node.exprs(name)
    chosen = [
        place
        for place, one in enumerate(outputs)
        if one.id in (wanted | wished)
        and not one.has("AggregateExpression", "PythonUDAF")
        and not one.has_subquery
    ]
    needed = frozenset(
        n for place in chosen if outputs[place].id in wanted for n in outputs[place].references
    )
    useful = frozenset(n for place in chosen for n in outputs[place].references)
    below = follow(node.children[0], needed, useful)
    places = tuple(place for place in chosen if outputs[place].references <= below.known)
    known = frozenset(one for place in places if (one := outputs[place].id) is not None)
    return Answer(Columns(node.number, places, below.recipe), known)


def _renamed(union: Node, branch: Node, places: Collection[int], recipe: Recipe) -> Recipe:
    old = tuple(branch.output[place] for place in places)
    new = tuple(union.output[place] for place in places)
    return Renamed(branch.number, old, new, recipe)


def _partition_keys(node: Node) -> frozenset[int]:
    keys = (one.id for one in node.exprs("partitionSpec") if one.kind == "AttributeReference")
    return frozenset(key for key in keys if key is not None)


def _condition_references(node: Node) -> frozenset[int]:
    condition = join_condition(node)
    return frozenset() if condition is None else condition.references


def _part(
    side: Node, wanted: frozenset[int], wished: frozenset[int]
) -> tuple[frozenset[int], frozenset[int]]:
    there = frozenset(side.output)
    return wanted & there, wished & there


def _is_equality(part: Expr, one: frozenset[int], other: frozenset[int]) -> bool:
    if part.kind not in ("EqualTo", "EqualNullSafe"):
        return False
    first, second = (child.references for child in part.children)
    if not first or not second:
        return False
    return (first <= one and second <= other) or (first <= other and second <= one)
