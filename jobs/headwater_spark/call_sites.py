"""Columns that the engine builds, without PySpark's note of the Python line that built each.

For its error messages PySpark notes the line of every operation on a column: that takes it seven calls to the JVM and a search for
IPython. A user's own function keeps these notes; a line of the engine would be of no use to anybody.

Decision 0195.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import delta
import pyspark
from pyspark.errors import utils

# As code says where it is from: by the path that it was imported by.
_ENGINE = f"{Path(__file__).parent}/"
# What stands between an operation and who asked for it.
_BETWEEN = tuple(f"{folder}/" for module in (pyspark, delta) for folder in module.__path__)
_notes_call_sites: Callable[[], bool] = utils.is_debugging_enabled


def _is_of_the_engine() -> bool:
    """Whether the engine's code asked for the operation."""
    frame = sys._getframe(2)  # noqa: SLF001 - PySpark walks the same frames to find the line
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(_ENGINE)


def _is_debugging_enabled() -> bool:
    return not _is_of_the_engine() and _notes_call_sites()


def note_lines_of_users_only() -> None:
    """Have PySpark, which asks a function of its own before each operation, note no line of the engine."""
    vars(utils)["is_debugging_enabled"] = _is_debugging_enabled
