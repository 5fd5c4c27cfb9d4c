"""Texts of one JSON value a line: Delta's logs, Spark's checkpoints, reports of our own programs.

A line ends at a line feed and nowhere else. ``str.splitlines`` also cuts at U+2028, U+2029, U+0085 and some control
characters, which JSON lets stand inside a text: a row with one of them would break the line that quotes it.

Decision 0130.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.storage.place import Place


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends; a carriage return before the line feed belongs to the end."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_lines(file: Place) -> list[str]:
    """The lines of a UTF-8 file.

    Raises:
        OSError: it can't be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    return lines_of(file.read_bytes().decode("utf-8"))


def byte_lines(file: Place) -> Iterator[bytes]:
    """The lines of a file one by one, with their ends, for files of which few lines are wanted; raises OSError."""
    with file.open("rb") as stream:
        yield from stream
