"""Which rules keep another row out tomorrow, and so stand against leaving a view as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater_spark.views import clock_in_rules as module
from headwater_spark.views.clock_in_rules import clock_in_rules

TODAY = "day < current_date()"


def found(monkeypatch: pytest.MonkeyPatch, *rules: Expectation) -> tuple[str | None, list[str]]:
    """The rule that asks the clock, and those that were looked into; a plan asks it where its rule calls a function."""
    looked: list[str] = []

    def select(text: str) -> Any:
        looked.append(text)
        expressions = SimpleNamespace(toSeq=lambda: [text])
        analyzed = SimpleNamespace(expressions=lambda: expressions)
        return SimpleNamespace(
            _jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: analyzed))
        )

    monkeypatch.setattr(module, "F", SimpleNamespace(expr=lambda text: text))
    monkeypatch.setattr(module, "items", list)
    monkeypatch.setattr(module, "asks_the_clock", lambda text: "()" in text)
    issue = clock_in_rules(SimpleNamespace(select=select), rules)  # type: ignore[arg-type]
    assert issue is None or issue.lasting
    return None if issue is None else issue.expression, looked


def rule(text: str, action: ViolationAction = ViolationAction.DROP, **more: Any) -> Expectation:
    """A rule of its text's name."""
    return Expectation(text, text, action, **more)


@pytest.mark.parametrize(
    ("action", "chooses"),
    [
        (ViolationAction.DROP, True),
        (ViolationAction.QUARANTINE, True),
        (ViolationAction.WARN, False),
        (ViolationAction.FAIL, False),
    ],
)
def test_rules_that_choose_rows(monkeypatch: pytest.MonkeyPatch, action: ViolationAction, chooses: bool):
    """Others only count, or stop the update."""
    assert found(monkeypatch, rule(TODAY, action)) == ((TODAY, [TODAY]) if chooses else (None, []))


def test_rules_without_a_clock(monkeypatch: pytest.MonkeyPatch):
    """A plan is looked into only where a word says that it may have one; a column of such a name is none."""
    key = rule("", unique=UniqueKey(("current_id",)))
    assert found(monkeypatch, rule("id > 0"), rule("date > '2026-01-01'"), key) == (
        None,
        ["date > '2026-01-01'"],
    )


def test_the_first_of_several(monkeypatch: pytest.MonkeyPatch):
    """It is named; and a literal that means a moment is a clock as well."""
    assert found(monkeypatch, rule("a > 0"), rule(TODAY), rule("rand() < 1"))[0] == TODAY
    literal = "day < DATE 'now'"
    assert found(monkeypatch, rule(literal))[0] == literal
