"""Which variables of a function have changed since it was declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.definitions.bound_names import changed_names, outer_values


class Odd:
    """Compares to nothing that is true or false, as a column does."""

    def __eq__(self, other: object) -> Any:
        raise TypeError("no truth value")

    __hash__ = object.__hash__


def declared(source: str, before: dict[str, object]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function ``f`` of a source that has these variables."""
    space: dict[str, Any] = dict(before)
    exec(source, space)
    return space["f"], space


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("def f(): return n", ["n"]),
        ("def f(): return [n for _ in range(3)]", ["n"]),
        ("def f(): return (lambda: n)()", ["n"]),
        ("def f(n=n): return n", []),
        ("def f(): n = 1; return n", []),
        ("def f(): return same, n", ["n"]),
        ("def f(): return x.n", []),
        ("def f(): return later", []),
    ],
)
def test_variables_of_a_module(source: str, changed: list[str]):
    """What a function reads when it is called counts, in whatever it contains; attributes, arguments and its own variables do not."""
    function, space = declared(source, {"n": "de", "same": (1, 2), "x": object()})
    before = outer_values(function)
    space.update(n="fr", same=(1, 2), later=1)
    assert changed_names(function, before) == changed


def test_variables_of_a_function_around_it():
    """A loop in a function has its variable in a cell, which all turns share."""
    made: list[tuple[Callable[[], str], dict[str, object]]] = []
    for name in ("de", "fr"):

        def f() -> str:
            return name  # noqa: B023 - that is the mistake

        made.append((f, outer_values(f)))
    assert [changed_names(function, before) for function, before in made] == [["name"], []]


def test_values_that_cannot_be_compared():
    """Another object is another value, unless both are plain and equal."""
    function, space = declared("def f(): return n", {"n": [Odd()]})
    before = outer_values(function)
    assert changed_names(function, before) == []
    space["n"] = [Odd()]
    assert changed_names(function, before) == ["n"]
    space["n"] = 1.0
    assert changed_names(function, {"n": 1}) == ["n"]


def test_what_is_no_function():
    """An object that can be called has no variables to look at."""
    assert outer_values(Odd) == {}
    assert changed_names(print, {"n": 1}) == []
