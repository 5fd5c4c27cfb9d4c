"""Arguments by name: an unknown one is refused with the nearest that the function has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from headwater.definitions.source_location import caller_location
from headwater.errors import UnsupportedArgument
from headwater.suggestions import did_you_mean, nearest

Given = ParamSpec("Given")
Result = TypeVar("Result")


def checked_arguments(face: Callable[Given, Result]) -> Callable[Given, Result]:
    """The public function; a call that does not fit its signature raises UnsupportedArgument with the user's line."""
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
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UnsupportedArgument(
                f"{what}: {error}.",
                where=caller_location(),
                remedy=f"The arguments are: {', '.join(signature.parameters)}.",
            ) from None
        return face(*args, **kwargs)

    return checked
