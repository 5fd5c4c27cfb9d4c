"""Rules on rows: ``expect`` (count), ``expect_or_drop``, ``expect_or_fail``, and their ``_all`` forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.definitions.source_location import SourceLocation, caller_location
from headwater.errors import InvalidExpectation
from headwater.graph.registry import active_registry

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]


def expectations_from(
    rules: Mapping[str, str] | None, action: ViolationAction, where: SourceLocation | None
) -> tuple[Expectation, ...]:
    """Check a dict of rules (name to SQL boolean); raises InvalidExpectation where a name or constraint is no text."""
    if rules is None:
        return ()
    if not isinstance(rules, Mapping):
        raise InvalidExpectation("expect_all takes a dict of names and constraints.", where=where)
    for name, constraint in rules.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidExpectation(
                f"{name!r} can't name an expectation.", where=where, remedy="Use a non-empty text."
            )
        if not isinstance(constraint, str) or not constraint.strip():
            raise InvalidExpectation(
                f"The constraint of {name!r} must be SQL text, not {type(constraint).__name__}.",
                where=where,
                remedy='Write it as text: "amount > 0".',
            )
    return tuple(Expectation(name, constraint, action, where) for name, constraint in rules.items())


def _expecting(rules: Mapping[str, str], action: ViolationAction) -> Decorator[Any]:
    where = caller_location()
    checked = expectations_from(rules, action, where)

    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is not None:
            for rule in reversed(checked):
                registry.add_expectation(function, rule)
        return function

    return decorate


def expect(name: str, constraint: str) -> Decorator[Any]:
    """Count the rows that break ``constraint`` (a SQL boolean over the function's columns); write them all.

    A row for which it is NULL passes, as in a SQL CHECK. Stack it in any order with the dataset's decorator.
    """
    return _expecting({name: constraint}, ViolationAction.WARN)


def expect_or_drop(name: str, constraint: str) -> Decorator[Any]:
    """As :func:`expect`; rows that break the rule are not written, and counted as dropped."""
    return _expecting({name: constraint}, ViolationAction.DROP)


def expect_or_fail(name: str, constraint: str) -> Decorator[Any]:
    """As :func:`expect`; a row that breaks the rule fails the flow, and nothing of its batch is written."""
    return _expecting({name: constraint}, ViolationAction.FAIL)


def expect_all(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect` at once: a dict of names and constraints."""
    return _expecting(expectations, ViolationAction.WARN)


def expect_all_or_drop(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect_or_drop` at once; a row that breaks several is dropped once."""
    return _expecting(expectations, ViolationAction.DROP)


def expect_all_or_fail(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect_or_fail` at once."""
    return _expecting(expectations, ViolationAction.FAIL)
