"""Columns of which equal values need not be the same say nothing of a group: what is made of them names no part of a view."""

from __future__ import annotations

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.eligibility import traced
from headwater_spark.views.inexact_columns import COLLATED, inexact_columns, with_collations
from headwater_spark.views.plan_description import Expr, Node

COUNTED = p.named(p.aggregate("Count", 3), 90)


def of_type(number: int, kind: object, name: str = "c") -> Expr:
    """A column of a type."""
    return Expr("AttributeReference", {"exprId": {"id": number}, "name": name, "dataType": kind})


def made_of(column: Expr, number: int = 80) -> Expr:
    """Something that is made of a column, as its text."""
    return p.named(Expr("Cast", {"dataType": "string"}, (column,)), number)


PRICE, DAY = of_type(2, "double"), p.column(1)
SESSION = of_type(2, {"type": "struct", "fields": []}, "session_window")
NESTED = of_type(2, {"type": "array", "elementType": "float", "containsNull": True})


def table(column: Expr) -> Node:
    """A day, a column of some type, and a number."""
    return Node("LogicalRelation", 0, {"output": (DAY, column, p.column(3))})


def grouped(column: Expr, *outputs: Expr) -> Node:
    """By the day and that column."""
    fields = {"groupingExpressions": (DAY, column), "aggregateExpressions": (DAY, *outputs, COUNTED)}
    return Node("Aggregate", 0, fields, (table(column),))


def windowed(column: Expr) -> Node:
    """With a partition for each day and value of that column."""
    fields = {"windowExpressions": (p.named(Expr("WindowExpression"), 90),), "partitionSpec": (DAY, column)}
    return Node("Window", 0, fields, (table(column),))


@pytest.mark.parametrize(
    "query",
    [
        *(grouped(one, made_of(one)) for one in (PRICE, SESSION, NESTED)),
        *(p.project(windowed(one), DAY, made_of(one)) for one in (PRICE, SESSION, NESTED)),
        p.project(p.distinct(p.project(table(PRICE), DAY, PRICE)), DAY, made_of(PRICE)),
        p.project(p.set_operation("Except", p.project(table(PRICE), DAY, PRICE), p.leaf(11, 12)), DAY, made_of(PRICE)),
    ],
)  # fmt: skip
def test_what_is_made_of_them_is_not_known(query: Node) -> None:
    """The group of a changed row has another zero, text or session than the row; its day it has."""
    root = p.numbered(query)
    leaf = root.leaves[0].number
    assert [traced(root, leaf, place) for place in (0, 1)] == [True, False]


def test_a_key_that_is_made_of_one_is_exact() -> None:
    """Groups by a whole number that is made of a price are found by it; rows that are no group by whatever they have."""
    rounded = Expr("Cast", {"dataType": "integer"}, (PRICE,))
    fields = {"groupingExpressions": (rounded,), "aggregateExpressions": (p.named(rounded, 80), COUNTED)}
    groups = p.numbered(Node("Aggregate", 0, fields, (table(PRICE),)))
    assert traced(groups, groups.leaves[0].number, 0)
    rows = p.numbered(p.project(table(PRICE), made_of(PRICE)))
    assert traced(rows, rows.leaves[0].number, 0)


@pytest.mark.parametrize("kind", ["Collate", "Cast"])
def test_what_is_made_of_a_key_that_is_one_is_not_known(kind: str) -> None:
    """Groups by a text with a collation, or as a float, that is made on the spot: the column below is neither."""
    text = of_type(2, "string")
    key = Expr(kind, {"dataType": "double"} if kind == "Cast" else {}, (text,))
    fields = {"groupingExpressions": (DAY, key), "aggregateExpressions": (DAY, made_of(key), COUNTED)}
    groups = p.numbered(Node("Aggregate", 0, fields, (table(text),)))
    assert [traced(groups, groups.leaves[0].number, place) for place in (0, 1)] == [True, False]
    week = Expr("TruncTimestamp", {}, (text,))
    fields = {"groupingExpressions": (week,), "aggregateExpressions": (made_of(week), COUNTED)}
    weeks = p.numbered(Node("Aggregate", 0, fields, (table(text),)))
    assert traced(weeks, weeks.leaves[0].number, 0)


def test_collations_are_marked() -> None:
    """Spark's description of a plan calls all texts alike; the columns that have a collation are named from outside."""
    root = p.numbered(grouped(of_type(2, "string"), made_of(of_type(2, "string"))))
    assert inexact_columns(root) == frozenset()
    marked = with_collations(root, {2})
    assert inexact_columns(marked) == {2}
    assert COLLATED in repr(marked.leaves[0].exprs("output")[1].fields)
    assert not traced(marked, marked.leaves[0].number, 1)
