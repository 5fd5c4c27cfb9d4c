"""The variables that a function reads from outside, and which of them have another value than when it was declared.

Python looks a variable up when a function is called, and a pipeline's functions are called after all sources were run.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any


def outer_values(function: Callable[..., Any]) -> dict[str, object]:
    """The variables that a function reads from around it, with the values that they have now; those without one are left out."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return {}
    around = getattr(function, "__globals__", {})
    values = {name: around[name] for name in _globals_of(code) if name in around}
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return values


def changed_names(function: Callable[..., Any], before: Mapping[str, object]) -> list[str]:
    """The variables whose value is another one than ``before``, in their order; an equal one is the same."""
    now = outer_values(function)
    return [name for name, value in before.items() if name in now and not _same(value, now[name])]


def _globals_of(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:  # functions and comprehensions inside it
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _same(one: object, other: object) -> bool:
    if one is other:
        return True
    # Other objects may compare to anything, as columns do.
    plain = (str, bytes, int, float, bool, tuple, list, dict, set, frozenset, type(None))
    if type(one) is not type(other) or not isinstance(one, plain):
        return False
    try:
        return bool(one == other)
    except Exception:
        return False
