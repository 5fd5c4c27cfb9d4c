"""Which columns of an operator rows are followed by."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.plan_description import Expr, Node
from headwater_spark.views.traced_answers import Answer
from headwater_spark.views.traced_columns import chosen_columns

SALES = p.leaf(1, 2)
OUTPUTS = (p.column(1), p.column(2), p.named(Expr("Upper", {}, (p.column(2),)), 20))


@pytest.mark.parametrize(
    ("query", "inexact", "known"),
    [
        (p.project(SALES, *OUTPUTS), {2}, {1, 2, 20}),
        (p.group(SALES, (1, 2), *OUTPUTS), set(), {1, 2, 20}),
        (p.group(SALES, (1, 2), *OUTPUTS), {2}, {1}),
        (p.group(SALES, (1,), p.column(1), p.named(p.aggregate("Max", 2), 20)), set(), {1}),
    ],
)
def test_columns_that_rows_are_followed_by(query: Node, inexact: set[int], known: set[int]):
    """All that a row brings; of a group those that its rows have in common, so none whose values may be equal and not the same."""
    recipe: Any = "below"
    asked: list[Any] = []

    def follow(child: Node, needed: frozenset[int], useful: frozenset[int]) -> Answer:
        asked.append((child.kind, needed, useful))
        return Answer(recipe, useful)

    node = p.numbered(query)
    answer = chosen_columns(node, frozenset({1, 20}), frozenset({2}), follow, frozenset(inexact))
    assert answer.known == known
    ((_, needed, useful),) = asked
    assert needed == ({1, 2} if 20 in known else {1})
    assert useful == ({1, 2} if known & {2, 20} else {1})
