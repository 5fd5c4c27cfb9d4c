"""Columns that the engine builds, without PySpark's note of the Python line that built each.

For its error messages PySpark notes the line of every operation on a column: that takes it seven calls to the JVM and a search for
IPython. A user's own function keeps these notes; a line of the engine would be of no use to anybody.

Decision 0195.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pyspark.errors import utils

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

_THREAD = threading.local()
_notes_call_sites: Callable[[], bool] = utils.is_debugging_enabled


def without_call_sites(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Decorate a function that builds columns and calls no code of a user: in its thread nothing is noted until it returns."""

    @functools.wraps(function)
    def quick(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        before = _is_quick()
        _THREAD.quick = True
        try:
            return function(*args, **kwargs)
        finally:
            _THREAD.quick = before

    return quick


def _is_quick() -> bool:
    return getattr(_THREAD, "quick", False)


def _is_debugging_enabled() -> bool:
    return not _is_quick() and _notes_call_sites()


# PySpark asks this function, by its name in the module, before each operation.
vars(utils)["is_debugging_enabled"] = _is_debugging_enabled
