"""Touched rows are never too few: whatever changed in a result is among them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.inexact_columns import COLLATED
from headwater_spark.views.plan_description import Expr, Node
from headwater_spark.views.recipes import Joined, Leaf, Rows, rows_read
from headwater_spark.views.touched_rows import Tracing
from headwater_spark.views.traced_answers import NotTraceable

VALUES = st.one_of(st.none(), st.integers(0, 2))
SALES, STORES, RETURNS = p.leaf(1, 2, 3), p.leaf(11, 12), p.leaf(21, 22)
COUNTED = p.named(p.aggregate("Sum", 3), 90)

# Each query, and the columns of its result that tell where it changed.
QUERIES: dict[str, tuple[Node, tuple[int, ...]]] = {
    "unpivot": (p.expand(SALES, 30, 3, 1, 2), (1, 2)),
    "unpivot by what is made": (p.expand(SALES, 30, 3, 1, 2), (1, 30)),
    "rolled up": (
        p.group(p.expand(SALES, 30, 2, 1, 3), (1, 30), p.named(p.column(1), 31), p.named(p.column(30), 32), COUNTED), (31, 32),
    ),
    "rolled up groups": (
        p.group(
            p.expand(p.group(SALES, (1,), p.named(p.column(1), 51), COUNTED), 30, 51, 90), (30,),
            p.named(p.column(30), 32), p.named(p.aggregate("Sum", 90), 91),
        ), (32,),
    ),
    "window by what is made": (
        p.project(p.window(p.project(SALES, p.named(p.column(2), 51), p.named(p.column(2), 52)), 51, 90), p.column(52), p.column(90)), (52,),
    ),
    "lateral": (p.lateral(SALES, 3, 30), (1, 30)),
    "groups of a lateral": (p.group(p.lateral(SALES, 2, 30), (30,), p.named(p.column(30), 31), COUNTED), (31,)),
    "joined with a lateral": (p.join(RETURNS, p.lateral(SALES, 2, 30), "LeftOuter", p.equal(21, 30)), (21, 1)),
    "filter": (p.where(SALES, p.above(3, 1)), (1, 2, 3)),
    "inner": (p.join(SALES, STORES, "Inner", p.equal(2, 11)), (1, 12)),
    "inner by one side": (p.join(SALES, STORES, "Inner", p.equal(2, 11)), (1,)),
    "inner by a column of the other side alone": (
        p.project(p.join(STORES, SALES, "Inner", p.equal(11, 2)), p.named(p.column(11), 40)), (40,),
    ),
    "two joins": (
        p.join(p.join(SALES, STORES, "Inner", p.equal(2, 11)), RETURNS, "Inner", p.equal(1, 21)), (1, 12),
    ),
    "equal to what another is equal to": (
        p.join(p.join(STORES, SALES, "Inner", p.equal(11, 2)), p.leaf(21, 22), "Inner", p.both(p.equal(2, 21), p.equal(3, 22))), (11,),
    ),
    "left outer": (p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), (1, 2)),
    "right outer": (p.join(STORES, SALES, "RightOuter", p.equal(11, 2)), (1, 2)),
    "left outer by the filled up side": (p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), (1, 12)),
    "right outer by the filled up side": (p.join(STORES, SALES, "RightOuter", p.equal(11, 2)), (11, 12)),
    "full outer": (p.join(SALES, STORES, "FullOuter", p.equal(2, 11)), (2, 11)),
    "full outer by one side": (p.join(SALES, STORES, "FullOuter", p.equal(2, 11)), (1,)),
    "over a full outer": (
        p.join(p.join(SALES, STORES, "FullOuter", p.equal(2, 11)), RETURNS, "LeftOuter", p.equal(11, 21)), (1, 12, 22),
    ),
    "groups of a full outer": (
        p.group(p.join(SALES, STORES, "FullOuter", p.equal(2, 11)), (12,), p.named(p.column(12), 13), COUNTED), (13,),
    ),
    "joined with an outer": (
        p.join(RETURNS, p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), "Inner", p.equal(21, 12)), (1, 22),
    ),
    "intersect": (p.set_operation("Intersect", p.project(SALES, p.column(1), p.column(2)), STORES), (1, 2)),
    "except": (p.set_operation("Except", p.project(SALES, p.column(1), p.column(2)), STORES), (1,)),
    "groups of an except": (
        p.group(p.set_operation("Except", p.project(SALES, p.column(1), p.column(3)), STORES), (1,), p.column(1), COUNTED), (1,),
    ),
    "joined with an except": (
        p.join(RETURNS, p.set_operation("Except", p.project(SALES, p.column(1), p.column(2)), STORES), "LeftOuter", p.equal(21, 1)), (21, 2),
    ),
    "inner by the other side": (p.join(SALES, STORES, "Inner", p.both(p.equal(11, 2), p.above(3, 0))), (11, 12)),
    "outer by the side that stays": (p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), (2,)),
    "semi by what is compared": (p.join(SALES, STORES, "LeftSemi", p.equal(2, 11)), (2,)),
    "anti by what is compared": (p.join(SALES, STORES, "LeftAnti", p.equal(2, 11)), (2,)),
    "semi": (p.join(SALES, STORES, "LeftSemi", p.equal(2, 11)), (1, 2, 3)),
    "anti": (p.join(SALES, STORES, "LeftAnti", p.equal(2, 11)), (1, 2, 3)),
    "groups": (p.group(p.where(SALES, p.above(3, 0)), (1, 2), p.column(1), p.column(2), COUNTED), (1, 2)),
    "having": (p.where(p.group(SALES, (1,), p.column(1), COUNTED), p.above(90, 2)), (1,)),
    "groups of a join": (
        p.group(p.join(SALES, STORES, "Inner", p.equal(2, 11)), (12, 1), p.column(1), p.named(p.column(12), 13), COUNTED), (1, 13),
    ),
    "nested groups": (
        p.group(p.group(SALES, (1, 2), p.column(1), p.column(2), COUNTED), (1,), p.column(1), p.named(p.aggregate("Sum", 90), 91)), (1,),
    ),
    "groups of an outer join": (
        p.group(p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), (1,), p.column(1), p.named(p.aggregate("Sum", 12), 91)), (1,),
    ),
    "window": (p.window(p.where(SALES, p.above(3, 0)), 2, 90), (2,)),
    "over a window": (p.where(p.window(SALES, 2, 90), p.above(90, 1)), (2,)),
    "window by a renamed column": (p.project(p.window(p.project(SALES, p.column(2), p.named(p.column(2), 52)), 2, 90), p.column(52), p.column(90)), (52,)),
    "window by a renamed key": (
        p.project(p.window(p.group(SALES, (2,), p.column(2), p.named(p.column(2), 52), COUNTED), 2, 90), p.column(52), p.column(90)), (52,),
    ),
    "joined windows": (p.join(p.window(SALES, 1, 90), p.window(RETURNS, 21, 92), "Inner", p.equal(1, 21)), (1,)),
    "distinct": (p.distinct(p.project(SALES, p.column(1), p.column(2))), (1, 2)),
    "union": (p.union(p.project(SALES, p.column(1), p.named(p.column(3), 5)), p.project(STORES, p.column(11), p.column(12))), (1, 5)),
    "groups of a union": (
        p.group(p.union(p.project(SALES, p.column(1), p.column(3)), STORES), (1,), p.column(1), COUNTED), (1,),
    ),
    "share of a total": (
        p.join(
            p.group(SALES, (1, 2), p.column(1), p.column(2), COUNTED),
            p.group(RETURNS, (21,), p.column(21), p.named(p.aggregate("Sum", 22), 92)),
            "Inner",
            p.equal(1, 21),
        ), (1,),
    ),
}  # fmt: skip


@st.composite
def changes(draw: Any, root: Node) -> tuple[dict[int, Counter[Any]], dict[int, Counter[Any]]]:
    """What the leaves of a plan had before, and what they have now."""
    before, after = {}, {}
    for leaf in root.leaves:
        row = st.tuples(*(st.tuples(st.just(number), VALUES) for number in leaf.output))
        old = draw(st.lists(row, max_size=5))
        kept = [one for one in old if draw(st.booleans())] if draw(st.booleans()) else old
        before[leaf.number] = Counter(old)
        after[leaf.number] = Counter(kept + (draw(st.lists(row, max_size=2))))
    return before, after


@pytest.mark.parametrize("name", QUERIES)
def test_no_row_of_a_result_changes_untouched(name: str):
    """Over random rows of all sources, before and after: the keys of what changed are among the touched keys."""
    query, wanted = QUERIES[name]
    root = p.numbered(query)

    @settings(max_examples=60, deadline=None)
    @given(changes(root))
    def check(rows: tuple[dict[int, Counter[Any]], dict[int, Counter[Any]]]) -> None:
        before, after = rows
        changed = frozenset(number for number in before if before[number] != after[number])
        tracing = Tracing(changed)
        touched = set()
        for leaf in changed:
            answer = tracing.touched(root, leaf, frozenset(wanted), frozenset())
            for row in p.recipe_rows(answer.recipe, root, before, after):
                touched.add(tuple(dict(row)[number] for number in wanted))
        old, new = p.rows_of(root, before), p.rows_of(root, after)
        differing = {tuple(dict(row)[number] for number in wanted) for row in (old - new) + (new - old)}
        assert differing <= touched

    check()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (p.group(SALES, (1,), COUNTED), 90),
        (p.group(SALES, (), COUNTED), 90),
        (p.window(SALES, 2, 90), 1),
        (p.join(SALES, STORES, "FullOuter", p.above(1, 1)), 1),
        (Node("Expand", 0, {"output": tuple(map(p.column, (1, 2, 3)))}, (SALES,)), 1),
        (p.join(SALES, STORES, "Inner", p.above(1, 1)), 12),
        (Node("Sample", 0, {}, (SALES,)), 1),
    ],
)
def test_what_can_not_be_followed(query: Node, wanted: int):
    """A column that changed rows say nothing of is not answered for: no part of the result would be safe."""
    root = p.numbered(query)
    leaf = root.leaves[0].number
    with pytest.raises(NotTraceable):
        Tracing(frozenset({leaf})).touched(root, leaf, frozenset({wanted}), frozenset())


def test_an_unneeded_side_of_a_join_is_not_read():
    """Where the changed side says all that is wanted, no join is made; where it does not, only equalities find partners."""
    root = p.numbered(p.join(SALES, STORES, "Inner", p.equal(2, 11)))
    sales, stores = (leaf.number for leaf in root.leaves)
    tracing = Tracing(frozenset({sales}))
    assert tracing.touched(root, sales, frozenset({1}), frozenset()).recipe == Leaf(sales, Rows.CHANGED)
    other = Tracing(frozenset({stores})).touched(root, stores, frozenset({1}), frozenset()).recipe
    assert isinstance(other, Joined)


@pytest.mark.parametrize(
    ("how", "leaf", "wanted", "read"),
    [
        ("Inner", 1, 2, 0), ("Inner", 0, 11, 0), ("LeftOuter", 1, 2, 0), ("LeftSemi", 1, 2, 0), ("LeftAnti", 1, 2, 0),
        ("Inner", 1, 1, 1), ("LeftOuter", 0, 11, 1), ("FullOuter", 1, 2, 2), ("LeftOuter", 1, 1, 1),
    ],
)  # fmt: skip
def test_the_other_side_is_not_read_for_what_is_equal(how: str, leaf: int, wanted: int, read: int):
    """A column that the join compares with one of the changed side; but not of rows that may have no partner."""
    root = p.numbered(p.join(SALES, STORES, how, p.equal(2, 11)))
    number = root.leaves[leaf].number
    answer = Tracing(frozenset({number})).touched(root, number, frozenset({wanted}), frozenset())
    assert rows_read(answer.recipe) == read


@pytest.mark.parametrize(("how", "read"), [("Inner", 0), ("LeftOuter", 1)])
def test_what_is_equal_inside_of_the_other_side_counts(how: str, read: int):
    """A column of a third table that is equal to the one that is compared, in all rows of that side."""
    inside = p.join(p.where(STORES, p.above(12, 0)), SALES, how, p.equal(11, 2))
    root = p.numbered(p.join(inside, RETURNS, "Inner", p.equal(2, 21)))
    number = root.leaves[2].number
    answer = Tracing(frozenset({number})).touched(root, number, frozenset({11}), frozenset())
    assert rows_read(answer.recipe) == read


def test_equal_texts_and_floats_may_differ():
    """A collation calls different texts equal, and zero equals minus zero: their rows are looked for on the other side."""
    for kind in (COLLATED, "double"):
        one, other = (
            Expr("AttributeReference", {"exprId": {"id": n}, "name": "c", "dataType": kind}) for n in (2, 11)
        )
        root = p.numbered(p.join(SALES, STORES, "Inner", Expr("EqualTo", {}, (one, other))))
        number = root.leaves[1].number
        answer = Tracing(frozenset({number})).touched(root, number, frozenset({2}), frozenset())
        assert rows_read(answer.recipe) == 1


def test_a_filter_by_a_subquery_is_not_carried_out():
    """What it lets through may have changed as well, with the subquery's table: all changed rows count as touched."""
    inner = Expr("InSubquery", {}, (p.column(1), Expr("ListQuery", {}, (), (STORES,))))
    for condition, filtered in ((inner, False), (p.above(1, 0), True)):
        root = p.numbered(p.where(SALES, condition))
        leaf = root.leaves[0].number
        answer = Tracing(frozenset({leaf})).touched(root, leaf, frozenset({1}), frozenset())
        assert isinstance(answer.recipe, Leaf) is not filtered


def test_nothing_is_asked_twice(monkeypatch: pytest.MonkeyPatch):
    """Through twelve joins over one another, which ask for their sides several times, each question is answered once."""
    root = p.leaf(1, 2)
    for table in range(1, 12):
        here = 10 * table
        root = p.join(root, p.leaf(here + 1, here + 2), "Inner", p.equal(here - 8, here + 1))
    root = p.numbered(root)
    asked: Counter[Any] = Counter()
    for name in ("_touched_rows", "_ever_rows"):
        answer = getattr(Tracing, name)

        def noted(self: Tracing, node: Node, *about: Any, name: str = name, answer: Any = answer) -> Any:
            asked[name, node.number, about] += 1
            return answer(self, node, *about)

        monkeypatch.setattr(Tracing, name, noted)
    leaf = root.leaves[0].number
    Tracing(frozenset({leaf})).touched(root, leaf, frozenset({112}), frozenset())
    assert len(asked) > 20
    assert set(asked.values()) == {1}
