"""Arguments by name: an unknown one is refused with the nearest that the function has, and so is a value of another kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from headwater.definitions.source_location import SourceLocation, caller_location
from headwater.errors import UnsupportedArgument
from headwater.suggestions import did_you_mean, nearest

Given = ParamSpec("Given")
Result = TypeVar("Result")


def checked_arguments(face: Callable[Given, Result]) -> Callable[Given, Result]:
    """The public function; a call that does not fit its signature, or gives something else than a text or a truth value where one
    is expected, raises UnsupportedArgument with the user's line.
    """
    signature = inspect.signature(face)
    what = f"dp.{face.__name__}"

    @functools.wraps(face)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        unknown = next((name for name in kwargs if name not in signature.parameters), None)
        if unknown is not None:
            raise UnsupportedArgument(
                f"{what} has no argument {unknown!r}.",
                where=caller_location(),
                remedy=did_you_mean(
                    nearest(unknown.lower(), signature.parameters),
                    f"Leave it out. The arguments are: {', '.join(signature.parameters)}.",
                ),
            )
        try:
            values = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise UnsupportedArgument(
                f"{what}: {error}.",
                where=caller_location(),
                remedy=f"The arguments are: {', '.join(signature.parameters)}.",
            ) from None
        _check_kinds(what, signature, values, caller_location())
        return face(*args, **kwargs)

    return checked


def _check_kinds(
    what: str, signature: inspect.Signature, values: Mapping[str, Any], where: SourceLocation | None
) -> None:
    """Any text is true in Python, "no" too; and a number for a comment or a folder would come to light far from its line."""
    for name, value in values.items():
        kind = signature.parameters[name].annotation
        if kind == "bool" and not (value is None or (isinstance(value, int) and value in (0, 1))):
            raise UnsupportedArgument(
                f"{what}: {name} is True or False, not {value!r}.",
                where=where,
                remedy=f"Write {name}=True, or leave it out.",
            )
        if kind == "str | None" and not (value is None or isinstance(value, str)):
            raise UnsupportedArgument(
                f"{what}: {name} takes a text, not {type(value).__name__}.",
                where=where,
                remedy=f'Write {name}="...", or leave it out.',
            )
