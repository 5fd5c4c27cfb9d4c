"""Expectations on rows: ``expect`` (count), ``expect_or_drop``, ``expect_or_quarantine``, ``expect_or_fail``, their ``_all`` forms,
and ``expect_unique``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from headwater.declarations.arguments import columns
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.expectation import Expectation, UniqueKey, UniqueWithin, ViolationAction
from headwater.definitions.source_location import SourceLocation, caller_location
from headwater.errors import InvalidExpectation
from headwater.graph.registry import active_registry

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]


def expectations_from(
    rules: Mapping[str, str] | None, action: ViolationAction, where: SourceLocation | None
) -> tuple[Expectation, ...]:
    """Check a dict of rules (name to SQL boolean); raises InvalidExpectation where a name or constraint is not a text."""
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


def check_names(rules: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """The expectations, unchanged; raises InvalidExpectation where two have one name."""
    seen: set[str] = set()
    checked = tuple(rules)
    for rule in checked:
        if rule.name in seen:
            raise InvalidExpectation(
                f"The expectation {rule.name!r} is given twice on one dataset.",
                where=rule.location,
                remedy="Give each rule its own name: its counts are kept under it.",
            )
        seen.add(rule.name)
    return checked


def _expecting(rules: Mapping[str, str], action: ViolationAction) -> Decorator[Any]:
    return _standing(expectations_from(rules, action, caller_location()))


def _standing(checked: tuple[Expectation, ...]) -> Decorator[Any]:
    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is not None:
            for rule in reversed(checked):
                registry.add_expectation(function, rule)
        return function

    return decorate


@checked_arguments
def expect(name: str, constraint: str) -> Decorator[Any]:
    """Count the rows that break ``constraint`` (a SQL boolean over the function's columns); write them all.

    A row for which it is NULL passes, as in a SQL CHECK. Stack it in any order with the dataset's decorator.
    """
    return _expecting({name: constraint}, ViolationAction.WARN)


@checked_arguments
def expect_or_drop(name: str, constraint: str) -> Decorator[Any]:
    """As :func:`expect`; rows that fail are not written, and counted as dropped."""
    return _expecting({name: constraint}, ViolationAction.DROP)


@checked_arguments
def expect_or_quarantine(name: str, constraint: str) -> Decorator[Any]:
    """As :func:`expect`; rows that fail go, complete, to the table ``<table>_quarantine`` instead of the table.

    There they stay with the names of all expectations that they failed, their source position and record, until
    ``headwater quarantine replay`` or ``discard``. On streaming tables and materialized views.
    """
    return _expecting({name: constraint}, ViolationAction.QUARANTINE)


@checked_arguments
def expect_or_fail(name: str, constraint: str) -> Decorator[Any]:
    """As :func:`expect`; a row that breaks it fails the flow, and nothing of its batch is written."""
    return _expecting({name: constraint}, ViolationAction.FAIL)


@checked_arguments
def expect_all(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect` at once: a dict of names and constraints."""
    return _expecting(expectations, ViolationAction.WARN)


@checked_arguments
def expect_all_or_drop(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect_or_drop` at once; a row that breaks several is dropped once."""
    return _expecting(expectations, ViolationAction.DROP)


@checked_arguments
def expect_all_or_quarantine(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect_or_quarantine` at once; a row that breaks several is quarantined once, with all their names."""
    return _expecting(expectations, ViolationAction.QUARANTINE)


@checked_arguments
def expect_all_or_fail(expectations: Mapping[str, str]) -> Decorator[Any]:
    """Several :func:`expect_or_fail` at once."""
    return _expecting(expectations, ViolationAction.FAIL)


@checked_arguments
def expect_unique(
    keys: str | Iterable[str], *, name: str | None = None, within: str = "batch", action: str = "warn"
) -> Decorator[Any]:
    """Expect a key to be unique. Of several rows with one key the first passes and the others fail.

    First is the one that comes first in its source where that is known (Kafka), else the smallest row, column by column.
    A key with a NULL in it passes, as in a SQL UNIQUE.

    Args:
        keys: the columns of the key.
        name: the expectation's name, else ``unique_`` and the columns.
        within: ``batch``: among the rows of a batch; ``table``: a key that the table already has fails, too. That
            reads the table's keys with each batch.
        action: what happens to the others: ``warn``, ``drop``, ``quarantine`` or ``fail``.

    On streaming tables and materialized views. Raises InvalidExpectation.
    """
    where = caller_location()
    named = columns(keys, "keys", where)
    if not named or len({key.lower() for key in named}) < len(named):
        raise InvalidExpectation(
            "dp.expect_unique takes the columns of a key, each once.",
            where=where,
            remedy='Write keys=["id"].',
        )
    for argument, value, choices in (("within", within, UniqueWithin), ("action", action, ViolationAction)):
        if value not in list(choices):
            raise InvalidExpectation(
                f"dp.expect_unique: {argument}={value!r} is unknown.",
                where=where,
                remedy=f"Use one of: {', '.join(choices)}.",
            )
    label = "unique_" + "_".join(named) if name is None else name
    checked = expectations_from(
        {label: f"unique({', '.join(named)}) within {within}"}, ViolationAction(action), where
    )
    return _standing((replace(checked[0], unique=UniqueKey(named, UniqueWithin(within))),))
