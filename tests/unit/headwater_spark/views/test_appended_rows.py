"""Which views grow by the new rows of one source alone, and which groups can be merged."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.appended_rows import Merging, appended, grouped, same
from headwater_spark.views.plan_description import Expr, Node

SALES, STORES = p.leaf(1, 2, 3), p.leaf(11, 12)
ON = p.equal(2, 11)
GROWING = {
    "filter": (p.where(p.project(SALES, p.column(1), p.column(3)), p.above(3, 0)), 0),
    "inner left": (p.join(SALES, STORES, "Inner", ON), 0),
    "inner right": (p.join(SALES, STORES, "Inner", ON), 1),
    "left outer": (p.join(SALES, STORES, "LeftOuter", ON), 0),
    "right outer": (p.join(SALES, STORES, "RightOuter", ON), 1),
    "semi": (p.join(SALES, STORES, "LeftSemi", ON), 0),
    "anti": (p.join(SALES, STORES, "LeftAnti", ON), 0),
    "union": (p.union(p.project(SALES, p.column(1), p.column(2)), STORES), 0),
    "second of a union": (p.union(p.project(SALES, p.column(1), p.column(2)), STORES), 1),
}
VALUES = st.one_of(st.none(), st.integers(0, 2))


@pytest.mark.parametrize("name", GROWING)
def test_new_rows_give_the_rows_that_are_added(name: str):
    """What the recipe gives from a source's new rows is what the result has more than before, row by row, as often."""
    query, side = GROWING[name]
    root = p.numbered(query)
    leaf = root.leaves[side].number
    recipe = appended(root, leaf)
    assert recipe is not None

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        rows = {
            one.number: data.draw(
                st.lists(st.tuples(*(st.tuples(st.just(n), VALUES) for n in one.output)), max_size=4)
            )
            for one in root.leaves
        }
        new = data.draw(
            st.lists(
                st.sampled_from(rows[leaf] or [tuple((n, 0) for n in root.leaves[side].output)]), max_size=3
            )
        )
        before = {number: Counter(own) for number, own in rows.items()}
        after = {**before, leaf: before[leaf] + Counter(new)}
        added = p.rows_of(root, after) - p.rows_of(root, before)
        # A leaf's changed rows are, of a source that grew, its new rows.
        came = p.recipe_rows(
            recipe, root, {**before, leaf: Counter()}, {**after, leaf: Counter(new)}, grown=True
        )
        assert _plain(came) == _plain(added)

    check()


def _plain(rows: p.Bag) -> Counter[tuple[object, ...]]:
    made: Counter[tuple[object, ...]] = Counter()
    for row, times in rows.items():
        made[tuple(value for _, value in row)] += times
    return made


@pytest.mark.parametrize(
    ("query", "side"),
    [
        (p.join(SALES, STORES, "LeftOuter", ON), 1),
        (p.join(SALES, STORES, "RightOuter", ON), 0),
        (p.join(SALES, STORES, "LeftSemi", ON), 1),
        (p.join(SALES, STORES, "LeftAnti", ON), 1),
        (p.join(SALES, STORES, "FullOuter", ON), 0),
        (p.group(SALES, (1,), p.column(1)), 0),
        (p.distinct(SALES), 0),
        (p.window(SALES, 1, 90), 0),
    ],
)
def test_what_new_rows_may_change(query: Node, side: int):
    """Where rows that are there may go, or change, nothing is appended."""
    root = p.numbered(query)
    assert appended(root, root.leaves[side].number) is None


def total(kind: str, number: int = 90, **more: bool) -> Expr:
    """An aggregate under an id."""
    return p.named(p.aggregate(kind, 3, **more), number)


def test_groups_that_can_be_merged():
    """Each column of the result says how it is merged, in the order and under the names that a Project gives it."""
    groups = p.group(
        p.where(SALES, p.above(3, 0)),
        (1, 2),
        p.column(1),
        p.column(2),
        total("Count"),
        total("Sum", 91),
        total("Min", 92),
        total("Max", 93),
    )
    query = p.project(
        groups, p.named(p.column(92), 95), p.column(2), p.column(93), p.column(1), p.column(90), p.column(91)
    )
    root = p.numbered(query)
    grouping = grouped(root, root.leaves[0].number)
    assert grouping is not None
    m = Merging
    assert grouping.columns == (m.LEAST, m.KEY, m.GREATEST, m.KEY, m.COUNT, m.SUM)


def test_one_group_of_all_rows():
    """Without a key there is one group, and its columns are merged as those of any other."""
    root = p.numbered(p.group(SALES, (), total("Count"), total("Max", 91)))
    grouping = grouped(root, root.leaves[0].number)
    assert grouping is not None
    assert grouping.columns == (Merging.COUNT, Merging.GREATEST)


FILTERED = Expr(
    "AggregateExpression", {"isDistinct": False}, (Expr("Sum", {}, (p.column(3),)), p.above(3, 0))
)


@pytest.mark.parametrize(
    "query",
    [
        p.group(SALES, (1, 2), p.column(1), total("Count")),
        p.group(SALES, (), total("Average")),
        p.group(SALES, (), p.named(Expr("Literal", {"value": "1"}), 91), total("Count")),
        p.group(SALES, (1,), p.column(1), total("Average")),
        p.group(SALES, (1,), p.column(1), total("Count", distinct=True)),
        p.group(SALES, (1,), p.column(1), p.named(FILTERED, 90)),
        p.group(SALES, (1,), p.column(1), p.named(Expr("Add", {}, (p.aggregate("Sum", 3), p.aggregate("Count", 3))), 90)),
        p.where(p.group(SALES, (1,), p.column(1), total("Count")), p.above(90, 3)),
        p.project(p.group(SALES, (1,), p.column(1), total("Count")), p.named(Expr("Add", {}, (p.column(90), p.column(1))), 95)),
        p.group(p.distinct(SALES), (1,), p.column(1), total("Count")),
        p.group(p.group(SALES, (1, 2), p.column(1), total("Sum")), (1,), p.column(1), p.named(p.aggregate("Sum", 90), 91)),
        p.group(p.join(SALES, STORES, "LeftAnti", ON), (1,), p.column(1), total("Average")),
        SALES,
    ],
)  # fmt: skip
def test_groups_that_can_not_be_merged(query: Node):
    """A key that is missing, another aggregate, an expression over aggregates, a condition on groups: they are recomputed."""
    root = p.numbered(query)
    assert grouped(root, root.leaves[0].number) is None


def test_subqueries_are_never_the_same():
    """Two expressions with one have the same text and other rows behind it; without one, the text and the ids say all."""
    one, other = (Expr("ScalarSubquery", {}, (), (table,)) for table in (SALES, STORES))
    assert not same(one, other)
    assert not same(Expr("Add", {}, (p.column(1), one)), Expr("Add", {}, (p.column(1), one)))
    assert same(Expr("Add", {}, (p.column(1),)), Expr("Add", {}, (p.column(1),)))
    assert not same(Expr("Add", {}, (p.column(1),)), Expr("Add", {}, (p.column(2),)))
