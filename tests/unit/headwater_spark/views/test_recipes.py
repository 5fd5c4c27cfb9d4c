"""A plan over other leaves: only what stands above them is built again."""

from __future__ import annotations

from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import Leaf, Over, Rows, Whole, over_leaves


def test_a_plan_over_other_leaves():
    """Branches without such a leaf stay as they are, and so does a plan without any."""
    left, right = Node("LogicalRelation", 2), Node("LogicalRelation", 3)
    join = Node("Join", 1, {}, (left, right))
    root = Node("Project", 0, {}, (join,))
    assert over_leaves(root, {2}) == Over(0, (Over(1, (Leaf(2, Rows.NEEDED), Whole(3))),))
    assert over_leaves(root, {2, 3}) == Over(0, (Over(1, (Leaf(2, Rows.NEEDED), Leaf(3, Rows.NEEDED))),))
    assert over_leaves(root, ()) == Whole(0)
