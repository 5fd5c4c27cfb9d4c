"""How rules are checked against a frame, and what is read out of the text of an error that one raised."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import BooleanType, DataType, LongType, StructField, StructType
from tests.unit.headwater_spark.plain_rows import plain_functions

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import InvalidExpectation
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.rules import expectations
from headwater_spark.rules.expectations import check_expectations, find_violation


class Analysed:
    """A frame of which one condition may be wrong; it counts the queries that are analysed."""

    columns = ("a", "b")

    def __init__(self, wrong: str = "", kinds: dict[str, DataType] | None = None) -> None:
        self.wrong, self.kinds = wrong, kinds or {}
        self.queries: list[str] = []

    def select(self, *columns: Any) -> Any:
        self._analyse("select", [column.of(_Itself()) for column in columns])
        kinds = [self.kinds.get(column.of(_Itself()), BooleanType()) for column in columns]
        return SimpleNamespace(
            schema=StructType([StructField(f"c{n}", kind) for n, kind in enumerate(kinds)])
        )

    def where(self, _condition: Any) -> None:
        self._analyse("where", [])

    def _analyse(self, kind: str, texts: list[str]) -> None:
        self.queries.append(kind)
        if self.wrong in texts:
            raise AnalysisException(f"[NO] {self.wrong}")


class _Itself(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return name


@pytest.fixture
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_functions(monkeypatch, expectations)
    monkeypatch.setattr(expectations, "_parsed", lambda *_: None)
    monkeypatch.setattr(expectations, "_check_reach", lambda *_: None)
    monkeypatch.setattr(expectations, "_check_functions", lambda *_: None)


def conditions(*texts: str) -> list[Expectation]:
    """A rule for each text, of that name."""
    return [Expectation(text, text, ViolationAction.DROP) for text in texts]


@pytest.mark.usefixtures("_no_spark")
def test_rules_that_are_fine_are_checked_together():
    """Two queries are analysed for all of them, not two for each."""
    frame: Any = Analysed()
    check_expectations(frame, conditions("a", "b", "c"), "t")
    assert frame.queries == ["select", "where"]
    check_expectations(frame, [], "t")
    assert len(frame.queries) == 2
    check_expectations(frame, conditions("a"), "t")
    assert len(frame.queries) == 4


@pytest.mark.usefixtures("_no_spark")
@pytest.mark.parametrize("frame", [Analysed(wrong="b"), Analysed(kinds={"b": LongType()})])
def test_the_first_wrong_rule_is_named(frame: Any):
    """Where one of several is wrong, the error names that one."""
    with pytest.raises(InvalidExpectation, match="'b'"):
        check_expectations(frame, conditions("a", "b", "c"), "t")


def test_messages_that_are_no_violation():
    """Other errors of Spark are not taken for one; text after a violation is."""
    assert find_violation(causes_of(["SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero"])) is None
    text = '[USER_RAISED_EXCEPTION] HEADWATER_EXPECTATION_VIOLATION{"rules":["r"],"record":{"a":"}"}} SQLSTATE: P0001 {x}'
    violation = find_violation(causes_of([f"SparkRuntimeException: {text}"]))
    assert violation is not None
    assert (violation.rules, violation.record) == (("r",), '{"a": "}"}')
