"""Whether a dataset's function may give another query at another time, though its plan has no ``current_date()``.

Python can put the day into a query as a plain value (``date.today()``), and Spark's parser makes one of ``date'today'``: the plan
then has a constant, and nothing says that it will be another one tomorrow. What is found here is only looked at more often: the
query itself decides whether it is another one.

Decision 0219.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from headwater.definitions.bound_names import outer_values
from headwater.definitions.clock_at_load import CLOCK_NAMES, GIVEN_TO_CALLS, clocked

# Literals that Spark's parser makes a plain day or time of; what is a text until it is cast, plans do say.
_TEXTS = re.compile(
    r"\b(date|timestamp(_[nl]tz)?)\s*(['\"])\s*(now|today|tomorrow|yesterday)\s*\3", re.IGNORECASE
)
# Functions of the pipeline that call each other more often than this are not looked into.
_DEPTH = 4


def may_ask_the_clock(function: Callable[..., Any]) -> bool:
    """Whether the code of a function, or of what it uses of its pipeline, names the clock or chance.

    Args:
        function: of a dataset; one that is made of a SQL text has it as ``written``.
    """
    return any(_asks(part) for part in _parts(function, set(), 0))


def has_special_literal(text: str) -> bool:
    """Whether a SQL text has a literal as ``date'today'``."""
    return _TEXTS.search(text) is not None


def _asks(part: CodeType | str | bool) -> bool:
    if isinstance(part, bool):
        return part
    if isinstance(part, str):
        return has_special_literal(part)
    return not CLOCK_NAMES.isdisjoint(part.co_names)


def _parts(value: object, seen: set[int], depth: int) -> Iterator[CodeType | str | bool]:
    """The codes and texts that a value is made of; True where the clock gave it a value when it was loaded."""
    if depth > _DEPTH or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, str):
        yield value
    elif isinstance(value, CodeType):
        yield value
        for constant in value.co_consts:
            yield from _parts(constant, seen, depth)
    elif isinstance(value, partial):
        for one in (value.func, *value.args, *value.keywords.values()):
            yield from _parts(one, seen, depth + 1)
    elif hasattr(type(value), "written"):
        # Asked of the class first: an object of a user may do anything when it is asked.
        yield from _parts(getattr(value, "written", None), seen, depth)
    elif isinstance(value, FunctionType) and not _is_installed(value.__code__.co_filename):
        yield from _parts(value.__code__, seen, depth)
        outer_names = outer_values(value)
        yield not clocked(value.__globals__).isdisjoint((*outer_names, *_made_as(value)))
        for outer in (*outer_names.values(), *(value.__defaults__ or ())):
            yield from _outer(outer, value.__code__, seen, depth + 1)


def _made_as(function: FunctionType) -> tuple[str, ...]:
    """Under which names a source keeps that a function's defaults, or what it was made with, are of the clock."""
    made_by_a_call = "<locals>" in function.__qualname__
    return (GIVEN_TO_CALLS,) if made_by_a_call else (function.__name__,)


def _outer(value: object, code: CodeType, seen: set[int], depth: int) -> Iterator[CodeType | str | bool]:
    if not isinstance(value, ModuleType):
        yield from _parts(value, seen, depth)
    elif not _is_installed(getattr(value, "__file__", None) or ""):
        yield not clocked(vars(value)).isdisjoint(code.co_names)
        for name in code.co_names:
            yield from _parts(vars(value).get(name), seen, depth)


def _is_installed(file: str) -> bool:
    paths = sysconfig.get_paths()
    return not file or any(file.startswith(paths[kind]) for kind in ("stdlib", "purelib", "platlib"))
