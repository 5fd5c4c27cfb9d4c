"""The one place that says which names there are. Each becomes a path, so none can lead out of its folder.

A *plain name* is what SQL takes without quotes: parts of tables' and flows' names, columns that commands ask for. A *dotted
name* is plain names with dots between them: a table as the manifest shows it, a flow; it names one folder. A *folder name* is
that of a pipeline: its id, and its folder below HEADWATER_PIPELINES. A *file name* is given from outside (ids of Airflow's
DAGs and tasks, readers of a change feed).

Decision 0135.
"""

from __future__ import annotations

import re

from headwater.errors import InvalidName

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
FOLDER_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_FILE = re.compile(r"\w[\w.-]*")
# Bytes. File systems take 255, and files beside them have a few more in their names (temporary ones, quarantines).
_LONGEST = 220

_PLAIN = "Use letters, digits and underscores, not starting with a digit, at most 128 characters."


def check_name(name: str, what: str, where: object = None) -> str:
    """Return ``name`` if it is one plain name, else raise InvalidName saying what it names."""
    if not is_plain_name(name):
        raise invalid_name(name, what, where)
    return name


def check_dotted_name(name: str, what: str, where: object = None) -> str:
    """Return ``name`` if it is a dotted name, else raise InvalidName saying what it names."""
    if not is_dotted_name(name):
        remedy = f"{_PLAIN} Dots part such names, and all of it has at most {_LONGEST} characters."
        raise invalid_name(name, what, where, remedy)
    return name


def is_plain_name(name: object) -> bool:
    """Whether a name needs no quotes in SQL."""
    return isinstance(name, str) and NAME_PATTERN.fullmatch(name) is not None


def is_dotted_name(name: object) -> bool:
    """Whether a name is of plain names with dots between them, and short enough for a folder."""
    return (
        isinstance(name, str) and len(name) <= _LONGEST and all(map(NAME_PATTERN.fullmatch, name.split(".")))
    )


def is_folder_name(name: object) -> bool:
    """Whether a name can be a pipeline's id, or that of its folder."""
    return isinstance(name, str) and FOLDER_PATTERN.fullmatch(name) is not None


def is_file_name(name: object) -> bool:
    """Whether a name from outside can be a part of a file's name."""
    return (
        isinstance(name, str)
        and _FILE.fullmatch(name) is not None
        and len(name.encode("utf-8", "surrogatepass")) <= _LONGEST
    )


def invalid_name(name: object, what: str, where: object = None, remedy: str = _PLAIN) -> InvalidName:
    """The error for a name of anything; signs that a terminal or a log could not show are escaped."""
    shown = ascii(name)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}... ({len(shown)} characters)"
    return InvalidName(f"{shown} can't name a {what}.", where=where, remedy=remedy)
