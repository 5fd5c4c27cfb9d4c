"""Which rows of a query's result can differ, from which rows of one source differ: as a recipe for a plan.

For each operator there are two questions. *Touched*: a superset of the rows that its output has before and not after, or after
and not before. *All*: a superset of the rows that it has before or after. Both are asked for some columns alone; a column that
can't be answered for is *unknown*. New rows never come from these plans: they say which part of the result is to be
recomputed, by the user's own plan, and too large a part is right as well.

Decisions 0162, 0210.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headwater_spark.views.inexact_columns import blurred, inexact_columns, partition_keys
from headwater_spark.views.join_conditions import (
    condition_references,
    conjuncts,
    equal_columns,
    is_equality,
    join_condition,
    part_of,
)
from headwater_spark.views.plan_description import PASSING, SET_OPERATIONS, Node, is_distinct
from headwater_spark.views.recipes import (
    Joined,
    Leaf,
    Over,
    Padded,
    Recipe,
    Renamed,
    Rows,
    Together,
    Whole,
    renamed_branch,
)
from headwater_spark.views.traced_answers import Answer, GivenAnswers, NotTraceable, Question
from headwater_spark.views.traced_columns import Follow, chosen_columns, expanded

_OUTER = ("LeftOuter", "RightOuter", "FullOuter")


def _through_join(how: str) -> NotTraceable:
    return NotTraceable("Join", f"which rows change can't be followed through a join of type {how}")


def _preserved(node: Node) -> Node | None:
    """The side of a join whose rows decide alone whether they are in its result, or once each."""
    left, right = node.children
    return {"LeftOuter": left, "LeftSemi": left, "LeftAnti": left, "RightOuter": right}.get(node.join_type)


@dataclass(frozen=True)
class _Walk:
    """One plan. ``inexact``: see ``inexact_columns``; ``given``: what was answered of it before."""

    inexact: frozenset[int] = frozenset()
    given: GivenAnswers = field(default_factory=GivenAnswers)


@dataclass(frozen=True)
class Tracing:
    """Follows the rows of changed leaves (by their numbers) through plans, each with what was answered of it before."""

    changed: frozenset[int]
    _walk: _Walk = field(default_factory=_Walk)
    _walks: dict[Node, _Walk] = field(default_factory=dict)

    def touched(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        """The touched rows of an operator, where rows of ``leaf`` below it changed.

        Args:
            wanted: the columns without which there is no answer; ``wished``: those that would make it smaller.

        Raises:
            NotTraceable: an operator lets no rows be followed; or a wanted column stays unknown.
        """
        walk = self._walks.setdefault(node, self._walks.get(node) or _Walk(inexact_columns(node)))
        tracing = replace(self, _walk=walk)
        answer = tracing._touched(node, leaf, wanted, wished | wanted)  # noqa: SLF001 - its own class
        if not wanted <= answer.known:
            raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")
        return answer

    def _touched(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        return self._walk.given.once(
            Question(node, leaf, wanted, wished),
            lambda: self._exact(node, self._touched_rows(node, leaf, wanted, wished)),
        )

    def _exact(self, node: Node, answer: Answer) -> Answer:
        return replace(answer, known=answer.known - blurred(node, self._walk.inexact))

    def _touched_rows(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        if node.number == leaf:
            return Answer(Leaf(leaf, Rows.CHANGED), node.output_ids)
        if node.kind == "Join":
            return self._touched_join(node, leaf, wanted, wished)
        if node.kind == "Union" or node.kind in SET_OPERATIONS:
            # Of a set operation, a row meets only rows that are equal to it.
            return self._touched_union(node, leaf, wanted, wished)
        if node.kind == "Window":
            # The other rows of its partition change as well: only what they have in common is known.
            keys = partition_keys(node)
            below = self._touched(node.children[0], leaf, wanted & keys, keys)
            return Answer(below.recipe, below.known & keys)
        return self._through(
            node, wished, lambda child, want, wish: self._touched(child, leaf, want, wish), wanted
        )

    def _through(self, node: Node, wished: frozenset[int], follow: Follow, wanted: frozenset[int]) -> Answer:
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
        if node.kind in ("Generate", "LateralJoin"):
            return self._through_generate(node, wished, follow, wanted)
        if node.kind == "Expand":
            return expanded(node, wanted, wished, follow)
        if node.kind in ("Project", "Aggregate"):
            return chosen_columns(node, wanted, wished, follow, self._walk.inexact)
        raise NotTraceable(node.kind, f"which rows change can't be followed through {node.kind}")

    def _through_generate(
        self, node: Node, wished: frozenset[int], follow: Follow, wanted: frozenset[int]
    ) -> Answer:
        given = node.children[0].output_ids
        made = node.output_ids - given
        needed = frozenset(number for one in node.expressions for number in one.references) & given
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
        on_left = leaf in left.leaf_numbers
        own, other = (left, right) if on_left else (right, left)
        how, preserved, wish = node.join_type, _preserved(node), wished | condition_references(node)
        if how not in ("Inner", "Cross", "FullOuter") and preserved is None:
            raise _through_join(how)
        below = None
        if how != "FullOuter" and (preserved is None or own is preserved):
            below = self._touched(own, leaf, *part_of(own, wanted, wish))
            if wanted <= below.known:
                return below  # rows that have no partner are among them, which does no harm
        alone = self._by_equality(node, own, leaf, wanted, wish)
        return alone or self._touched_pairs(node, own, other, leaf, wanted, wish, below)

    def _touched_pairs(
        self,
        node: Node,
        own: Node,
        other: Node,
        leaf: int,
        wanted: frozenset[int],
        wish: frozenset[int],
        below: Answer | None,
    ) -> Answer:
        """The touched rows of a join by reading its other side; ``below``: those of its own side, where they decide alone."""
        how, preserved = node.join_type, _preserved(node)

        def follow(side: Node, want: frozenset[int], also: frozenset[int]) -> Answer:
            return self._touched(side, leaf, want, also)

        if below is not None:
            if preserved is not None and how not in _OUTER:
                raise _through_join(how)
            below = self._for_pairs(node, own, follow, wanted, wish, below)
            ever = self._for_pairs(node, other, self._ever, wanted, wish)
            if preserved is None:
                return self._matched(node, below, ever, own, "Inner")
            return self._filled_up(node, own, below, ever, alone=below, columns=wanted | wish)
        if preserved is not None and wanted <= preserved.output_ids:
            # The rows of the preserved side whose partners changed.
            changed = self._for_pairs(node, own, follow, frozenset(), wish)
            ever = self._for_pairs(node, preserved, self._ever, wanted, wish)
            return self._matched(node, ever, changed, preserved, "LeftSemi")
        if how not in _OUTER:
            raise _through_join(how)
        below = self._for_pairs(node, own, follow, wanted, wish)
        ever = self._for_pairs(node, other, self._ever, wanted, wish)
        partners = self._matched(node, ever, below, other, "LeftSemi")
        return self._filled_up(
            node, own, below, ever,
            alone=below if how == "FullOuter" else None, left=partners, columns=wanted | wish,
        )  # fmt: skip

    def _by_equality(
        self, node: Node, own: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]
    ) -> Answer | None:
        """The touched rows of one side alone, where each wanted column of the other is equal to one of its own.

        Of an outer join, rows of the side that is filled up say nothing of their own columns: those may be NULL without a partner.
        """
        inner, there = node.join_type == "Inner", own.output_ids
        if not inner and _preserved(node) in (None, own):
            return None
        instead = equal_columns(node, own)
        others = sorted(wanted - there)
        if not others or not instead.keys() >= set(others) or (wanted & there and not inner):
            return None
        needed = (wanted & there) | {instead[number] for number in others}
        try:
            below = self._touched(own, leaf, needed, (wished & there) | needed)
        except NotTraceable:
            return None
        if not needed <= below.known:
            return None
        kept = sorted(below.known & (wished | needed)) if inner else []  # what nothing reads is not there
        old, new = (*kept, *(instead[number] for number in others)), (*kept, *others)
        return Answer(Renamed(node.number, old, new, below.recipe), frozenset(new))

    def _for_pairs(
        self,
        node: Node,
        side: Node,
        follow: Follow,
        wanted: frozenset[int],
        wished: frozenset[int],
        known: Answer | None = None,
    ) -> Answer:
        """Rows of one side of a join, with the columns of its condition if they can be had: partners are known by them."""
        want, wish = part_of(side, wanted, wished)
        answer = follow(side, want, wish) if known is None else known
        needed = condition_references(node) & side.output_ids
        if needed <= answer.known:
            return answer
        try:
            return follow(side, want | needed, wish)
        except NotTraceable:
            return answer

    def _filled_up(
        self,
        node: Node,
        own: Node,
        one: Answer,
        other: Answer,
        *,
        alone: Answer | None,
        left: Answer | None = None,
        columns: frozenset[int],
    ) -> Answer:
        """The pairs of an outer join, with rows that may have no partner: ``alone`` of the one's side, ``left`` of the other's."""
        pairs = self._matched(node, one, other, own, "Inner")
        # Columns that nothing reads are known, and not there: leaves are read without them.
        known = pairs.known & columns
        ids = tuple(sorted(known))
        parts: list[Recipe] = [Padded(ids, frozenset(), pairs.recipe)]
        if alone is not None:
            parts.append(Padded(ids, known - one.known, alone.recipe))
        if left is not None:
            parts.append(Padded(ids, known - other.known, left.recipe))
        return Answer(Together(tuple(parts)), known)

    def _matched(self, node: Node, one: Answer, other: Answer, first: Node, how: str) -> Answer:
        """A join of two answers; ``one`` is of the side ``first``."""
        known = one.known | other.known
        parts = conjuncts(join_condition(node))
        usable = [
            place for place, part in enumerate(parts) if part.references <= known and not part.has_subquery
        ]
        if not any(is_equality(parts[place], one.known, other.known) for place in usable):
            raise NotTraceable("Join", "a join has no equality that its changed rows could be found by")
        in_order = how == "LeftSemi" or first is node.children[0]
        left, right = (one, other) if in_order else (other, one)
        recipe = Joined(node.number, how, left.recipe, right.recipe, tuple(usable))
        return Answer(recipe, one.known if how == "LeftSemi" else known)

    # -- all rows ------------------------------------------------------------------------------------------------

    def _ever(self, node: Node, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        if not self._changes(node):
            return Answer(Whole(node.number), node.output_ids)
        return self._walk.given.once(
            Question(node, None, wanted, wished),
            lambda: self._exact(node, self._ever_rows(node, wanted, wished)),
        )

    def _ever_rows(self, node: Node, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        if not node.children:
            return Answer(Leaf(node.number, Rows.EVER), node.output_ids)
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
                parts.append(renamed_branch(node, child, places, below.recipe))
            return Answer(Together(tuple(parts)), frozenset(wanted))
        if node.kind == "Window" or node.kind in SET_OPERATIONS:
            return self._ever(node.children[0], wanted, wished)
        return self._through(node, wished, self._ever, wanted)

    def _ever_join(self, node: Node, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        left, right = node.children
        how = node.join_type
        wish = wished | condition_references(node)
        preserved = _preserved(node)
        if how not in ("Inner", "Cross", "FullOuter") and preserved is None:
            raise NotTraceable("Join", f"rows can't be followed through a join of type {how}")
        enough = (left, right) if how in ("Inner", "Cross") else (preserved,)
        for side in enough:
            if side is not None and wanted <= side.output_ids:
                return self._ever(side, *part_of(side, wanted, wish))
        one = self._for_pairs(node, left, self._ever, wanted, wish)
        other = self._for_pairs(node, right, self._ever, wanted, wish)
        if how in ("Inner", "Cross"):
            return self._matched(node, one, other, left, "Inner")
        if how not in _OUTER:
            raise NotTraceable("Join", f"rows can't be followed through a join of type {how}")
        return self._filled_up(
            node, left, one, other,
            alone=one if how != "RightOuter" else None, left=other if how != "LeftOuter" else None,
            columns=wanted | wish,
        )  # fmt: skip

    def _touched_union(self, node: Node, leaf: int, wanted: frozenset[int], wished: frozenset[int]) -> Answer:
        child = next(child for child in node.children if leaf in child.leaf_numbers)
        if node.kind in SET_OPERATIONS and child is node.children[0]:
            return self._touched(child, leaf, wanted, wished)
        chosen = wanted | wished
        pairs = {out: own for out, own in zip(node.output, child.output, strict=True) if out in chosen}
        below = self._touched(
            child, leaf, frozenset(pairs[out] for out in wanted if out in pairs), frozenset(pairs.values())
        )
        places = [
            place for place, out in enumerate(node.output) if out in pairs and pairs[out] in below.known
        ]
        known = frozenset(node.output[place] for place in places)
        return Answer(renamed_branch(node, child, places, below.recipe), known)

    def _changes(self, node: Node) -> bool:
        return not self.changed.isdisjoint(node.leaf_numbers)
