from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class SourceLocation:
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def in_sql(self) -> bool:
        """Whether it is a line of SQL: what is to be written there is SQL too."""
        return self.file.lower().endswith(".sql")

    def relative_to(self, folder: Path) -> SourceLocation:
        """The same place with the file named from ``folder``, where it lies below it."""
        try:
            return SourceLocation(Path(self.file).relative_to(folder).as_posix(), self.line)
        except ValueError:
            return self


def function_location(function: Callable[..., Any]) -> SourceLocation | None:
    """The first line of a function (of its first decorator, as Python counts), if it has code of its own."""
    code = getattr(function, "__code__", None)
    return SourceLocation(code.co_filename, code.co_firstlineno) if code is not None else None


# Where a declaration stands that no line of Python makes.
_DECLARED: ContextVar[SourceLocation | None] = ContextVar("headwater_declared_at", default=None)


@contextmanager
def declared_at(location: SourceLocation) -> Iterator[None]:
    """Let declarations made inside the block stand at ``location``, whichever code makes them."""
    token = _DECLARED.set(location)
    try:
        yield
    finally:
        _DECLARED.reset(token)


def caller_location() -> SourceLocation | None:
    """The innermost line on the stack that is not Headwater's own."""
    declared = _DECLARED.get()
    if declared is not None:
        return declared
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - a traceback would be dearer
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None
