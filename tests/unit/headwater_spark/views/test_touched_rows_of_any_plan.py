"""Whatever operators a query is made of: what changed in its result is among the touched rows, or can't be followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.seeds import SOAK
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.appended_rows import appended
from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import columns_read
from headwater_spark.views.touched_rows import Tracing
from headwater_spark.views.traced_answers import NotTraceable

VALUES = st.one_of(st.none(), st.integers(0, 2))
JOINS = ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti")


class _Plans:
    """Random plans; every column has an id of its own."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.ids: Iterator[int] = count(1)

    def plan(self, depth: int) -> Node:
        """A plan of some operators above each other."""
        kinds = (
            ("leaf",)
            if depth == 0
            else (
                "project",
                "filter",
                "join",
                "join",
                "set",
                "distinct",
                "group",
                "window",
                "expand",
                "lateral",
            )
        )
        kind = self.draw(st.sampled_from(kinds))
        return getattr(self, kind)(depth)

    def leaf(self, _depth: int) -> Node:
        return p.leaf(*(next(self.ids) for _ in range(self.draw(st.integers(2, 3)))))

    def column(self, node: Node) -> int:
        return int(self.draw(st.sampled_from(node.output)))

    def project(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return self.of(child, self.draw(st.integers(1, min(3, len(child.output)))))

    def of(self, child: Node, columns: int) -> Node:
        outputs = [self.column(child) for _ in range(columns)]
        return p.project(child, *(p.named(p.column(number), next(self.ids)) for number in outputs))

    def filter(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return p.where(child, p.above(self.column(child), 0))

    def join(self, depth: int) -> Node:
        left, right = self.plan(depth - 1), self.plan(self.draw(st.integers(0, depth - 1)))
        condition = p.equal(self.column(left), self.column(right))
        if self.draw(st.booleans()):
            more = p.above(self.column(self.draw(st.sampled_from((left, right)))), 0)
            condition = p.both(condition, more)
        return p.join(left, right, self.draw(st.sampled_from(JOINS)), condition)

    def set(self, depth: int) -> Node:
        columns = self.draw(st.integers(1, 2))
        sides = [self.of(self.plan(depth - 1), columns), self.of(self.plan(0), columns)]
        kind = self.draw(st.sampled_from(("Union", "Intersect", "Except")))
        return p.union(*sides) if kind == "Union" else p.set_operation(kind, *sides)

    def distinct(self, depth: int) -> Node:
        return p.distinct(self.project(depth))

    def group(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        keys = tuple(dict.fromkeys(self.column(child) for _ in range(self.draw(st.integers(1, 2)))))
        shown = [p.named(p.column(key), next(self.ids)) for key in keys if self.draw(st.integers(0, 4))]
        return p.group(child, keys, *shown, p.named(p.aggregate("Sum", self.column(child)), next(self.ids)))

    def expand(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return p.expand(child, next(self.ids), self.column(child), *child.output[:-1])

    def lateral(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return p.lateral(child, self.column(child), next(self.ids))

    def window(self, depth: int) -> Node:
        child = self.plan(depth - 1)
        return p.window(child, self.column(child), next(self.ids))


@st.composite
def cases(draw: Any) -> tuple[Node, dict[int, Counter[Any]], dict[int, Counter[Any]], tuple[int, ...]]:
    """A plan, what its leaves had before and have now, and some columns of its result."""
    root = p.numbered(_Plans(draw).plan(draw(st.integers(1, 4))))
    before, after = {}, {}
    for leaf in root.leaves:
        row = st.tuples(*(st.tuples(st.just(number), VALUES) for number in leaf.output))
        old = draw(st.lists(row, max_size=4))
        before[leaf.number] = Counter(old)
        kept = [one for one in old if draw(st.integers(0, 3))]
        after[leaf.number] = Counter(kept + draw(st.lists(row, max_size=2)))
    columns = draw(st.lists(st.sampled_from(root.output), min_size=1, max_size=3, unique=True))
    return root, before, after, tuple(columns)


@settings(
    max_examples=4000 if SOAK else 300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(cases())
def test_no_row_of_any_result_changes_untouched(
    case: tuple[Node, dict[int, Counter[Any]], dict[int, Counter[Any]], tuple[int, ...]],
) -> None:
    """Random plans over random rows, several leaves changed at once: keys of what differs are among the touched keys, which are the
    same where changed rows come with no more columns than are read.
    """
    root, before, after, wanted = case
    changed = frozenset(number for number in before if before[number] != after[number])
    try:
        answers = [Tracing(changed).touched(root, leaf, frozenset(wanted), frozenset()) for leaf in changed]
    except NotTraceable:
        return
    nodes = {node.number: node for node in root.walk()}

    def keys(*, all_columns: bool) -> set[tuple[Any, ...]]:
        return {
            tuple(dict(row)[number] for number in wanted)
            for one in answers
            for row in p.recipe_rows(
                one.recipe, root, before, after,
                needed=None if all_columns else columns_read(one.recipe, nodes) | frozenset(wanted),
            )
        }  # fmt: skip

    touched = keys(all_columns=True)
    assert keys(all_columns=False) == touched
    old, new = p.rows_of(root, before), p.rows_of(root, after)
    differing = {tuple(dict(row)[number] for number in wanted) for row in (old - new) + (new - old)}
    assert differing <= touched


@settings(max_examples=2000 if SOAK else 150, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_what_one_source_adds_is_all_that_is_added(
    case: tuple[Node, dict[int, Counter[Any]], dict[int, Counter[Any]], tuple[int, ...]],
) -> None:
    """Where new rows of a leaf are said to be only added to the result, nothing that was there goes, and nothing is missing."""
    root, before, after, _ = case
    for leaf in root.leaves:
        recipe = appended(root, leaf.number)
        if recipe is None:
            continue
        new = after[leaf.number]
        grown = {**before, leaf.number: before[leaf.number] + new}
        # A leaf's changed rows are, of a source that grew, its new rows.
        nothing = {**before, leaf.number: Counter()}
        came = p.recipe_rows(recipe, root, nothing, {**before, leaf.number: new}, grown=True)
        old, now = p.rows_of(root, before), p.rows_of(root, grown)
        assert not old - now
        assert _values(came) == _values(now - old)


def _values(rows: Counter[Any]) -> Counter[Any]:
    return Counter(tuple(value for _, value in row) for row in rows.elements())
