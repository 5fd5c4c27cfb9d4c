"""Functions of the user's that are called while the update runs: one that can't be would come to light with its first call."""

from __future__ import annotations

import inspect
from typing import Any

from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedArgument


def check_callable(
    what: str,
    function: Any,
    arguments: tuple[Any, ...],
    described: str,
    where: SourceLocation | None,
    *,
    name: str | None = None,
) -> str:
    """Check the function that the decorator ``what`` stands above; its name, ``name`` where that is given.

    Args:
        arguments: such as it will be called with.
        described: the same in words.

    Raises:
        UnsupportedArgument: it is no function, or takes others, or calling it would do nothing.
    """
    form = f"Write @{what} above a function of {described}."
    named = name or getattr(function, "__name__", None)
    if not callable(function) or named is None:
        raise UnsupportedArgument(
            f"{what} decorates a function, not {type(function).__name__}.", where=where, remedy=form
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UnsupportedArgument(
            f"{what}: {named!r} is a coroutine or generator; calling it would do nothing.",
            where=where,
            remedy=form,
        )
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise UnsupportedArgument(
            f"{what}: {named!r} can't be called with {described}.", where=where, remedy=form
        ) from None
    except ValueError:
        pass  # a function in C does not describe its arguments
    return str(named)
