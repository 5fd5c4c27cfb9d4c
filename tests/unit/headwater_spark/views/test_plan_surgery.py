"""How columns get the ids that a view's plan has for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.views import plan_surgery
from headwater_spark.views.plan_surgery import ViewPlan


def attribute(number: int) -> Any:
    """A column of a plan, with an id."""
    identity = SimpleNamespace(id=lambda: number)
    return SimpleNamespace(number=number, exprId=lambda: identity, dataType=lambda: f"type of {number}")


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A view's plan that prints what it makes; its own columns have any id."""
    made: Any = ViewPlan.__new__(ViewPlan)
    monkeypatch.setattr(plan_surgery, "items", list)
    made._attribute = attribute
    made._alias = lambda value, named: f"{getattr(value, 'number', value)} as {named.number}"
    made._project = lambda columns, _: [getattr(column, "number", column) for column in columns]
    made._class = lambda _: lambda value, kind: f"{value} of {kind}"
    return made


def gives(*numbers: int) -> Any:
    """A plan with columns of these ids."""
    return SimpleNamespace(output=lambda: [attribute(number) for number in numbers])


def test_columns_under_other_ids(plan: Any):
    """In the order that is wanted; a column that has its id already stays what it is."""
    assert plan._chosen(gives(1, 2, 3), (3, 1), (7, 1)) == ["3 as 7", 1]


@pytest.mark.parametrize(("old", "new"), [((1, 2), (1,)), ((1,), (1, 2))])
def test_ids_that_are_not_in_pairs(plan: Any, old: tuple[int, ...], new: tuple[int, ...]):
    """No column is left out in silence: the view is recomputed whole."""
    with pytest.raises(ValueError, match="zip"):
        plan._chosen(gives(1, 2), old, new)


def test_columns_that_are_padded(plan: Any):
    """NULL of the column's own type stands where a plan has none."""
    assert plan._padded((2, 5, 1), {5}, gives(1, 2)) == [2, "None of type of 5 as 5", 1]
