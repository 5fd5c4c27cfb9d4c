"""A plan over other leaves: only what stands above them is built again."""

from __future__ import annotations

from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import (
    Columns,
    Joined,
    Leaf,
    Over,
    Padded,
    Renamed,
    Rows,
    Together,
    Whole,
    columns_read,
    over_leaves,
)


def test_a_plan_over_other_leaves():
    """Branches without such a leaf stay as they are, and so does a plan without any."""
    left, right = Node("LogicalRelation", 2), Node("LogicalRelation", 3)
    join = Node("Join", 1, {}, (left, right))
    root = Node("Project", 0, {}, (join,))
    assert over_leaves(root, {2}) == Over(0, (Over(1, (Leaf(2, Rows.NEEDED), Whole(3))),))
    assert over_leaves(root, {2, 3}) == Over(0, (Over(1, (Leaf(2, Rows.NEEDED), Leaf(3, Rows.NEEDED))),))
    assert over_leaves(root, ()) == Whole(0)


def test_columns_that_a_recipe_reads():
    """Those of conditions and of chosen expressions; of operators that compare whole rows, all; a column that is handed on is not read."""
    left, right = p.where(p.leaf(1, 2, 3), p.above(2, 0)), p.leaf(4, 5)
    root = p.numbered(
        p.project(
            p.join(left, right, "Inner", p.both(p.equal(1, 4), p.above(5, 1))), p.column(3), p.column(5)
        )
    )
    nodes = {node.number: node for node in root.walk()}
    changed = Leaf(3, Rows.CHANGED)
    filtered = Over(2, (changed,))
    assert columns_read(changed, nodes) == columns_read(Whole(4), nodes) == frozenset()
    assert columns_read(filtered, nodes) == {2}
    joined = Joined(1, "Inner", filtered, Whole(4), (0,))
    assert columns_read(joined, nodes) == {1, 2, 4}
    assert columns_read(Columns(0, (1,), joined), nodes) == {1, 2, 4, 5}
    assert columns_read(Renamed(0, (3,), (9,), filtered), nodes) == {2, 3}
    assert columns_read(Padded((1,), frozenset(), filtered), nodes) == {1, 2}
    assert columns_read(Together((filtered, Padded((5,), frozenset(), Whole(4)))), nodes) == {2, 5}
    sets = p.numbered(p.set_operation("Except", p.leaf(1, 2), p.leaf(3, 4)))
    nodes = {node.number: node for node in sets.walk()}
    assert columns_read(Over(0, (Leaf(1, Rows.CHANGED), Whole(2))), nodes) == {1, 2, 3, 4}
