"""The part of a table that each update replaces: which conditions say the same of rows that leave and of rows that come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import flow

from headwater.errors import NotADataFrame, QueryFailed
from headwater_spark.resolution import replaced_slice as subject
from headwater_spark.resolution.replaced_slice import in_slice, slice_condition

PART = flow(replace_where="day > 1")


class Frame:
    """Rows that say what they are filtered by."""

    def __init__(self, *, streaming: bool = False) -> None:
        self.isStreaming = streaming

    def where(self, condition: Any) -> Any:
        return ("where", condition)


@pytest.fixture
def condition(monkeypatch: pytest.MonkeyPatch):
    """Let the condition be made of these expressions of Spark's."""

    def of(*parts: str, deterministic: bool = True) -> None:
        node: Any = SimpleNamespace(deterministic=lambda: deterministic, sql=lambda: "(day > 1)")
        monkeypatch.setattr(subject, "_condition", lambda *_: node)
        monkeypatch.setattr(subject, "expression_nodes", lambda _: parts)
        monkeypatch.setattr(subject, "class_name", lambda part: f"org.apache.spark.{part}")
        monkeypatch.setattr(subject, "_as_column", lambda text: f"column {text}")

    return of


def test_a_condition_over_the_row(condition):
    """The rows of the query that belong to the part are kept; Delta gets the condition as text."""
    condition("GreaterThan", "AttributeReference", "Literal")
    assert in_slice(Frame(), PART) == ("where", "column day > 1")  # type: ignore[arg-type, comparison-overlap]
    assert slice_condition(Frame(), PART) == "(day > 1)"  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["ScalarSubquery", "ListQuerySubquery", "Exists"])
def test_a_condition_that_looks_elsewhere(condition, part: str):
    """It could say one thing of what leaves, another of what comes."""
    condition("GreaterThan", part)
    with pytest.raises(QueryFailed, match="has a subquery"):
        in_slice(Frame(), PART)  # type: ignore[arg-type]


def test_a_condition_that_throws_dice(condition):
    """The same for chance."""
    condition("LessThan", "Rand", deterministic=False)
    with pytest.raises(QueryFailed, match="depends on chance"):
        in_slice(Frame(), PART)  # type: ignore[arg-type]


def test_a_stream(condition):
    """It is not a part of a table that could be recomputed."""
    condition("GreaterThan")
    with pytest.raises(NotADataFrame, match="streaming"):
        in_slice(Frame(streaming=True), PART)  # type: ignore[arg-type]
