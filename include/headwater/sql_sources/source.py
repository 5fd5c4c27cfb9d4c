"""The text of a SQL source, and places in it."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.definitions.source_location import SourceLocation


@dataclass(frozen=True)
class Place:
    """A character of a source: its line and column count from 1."""

    label: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.label}:{self.line}:{self.column}"

    @property
    def location(self) -> SourceLocation:
        """The line, as definitions have it."""
        return SourceLocation(self.label, self.line)


@dataclass(frozen=True)
class SqlSource:
    """A piece of SQL that is read as one. ``label`` is its name in errors."""

    label: str
    text: str

    def place(self, offset: int) -> Place:
        """Where the character at ``offset`` stands."""
        before = self.text[:offset]
        return Place(self.label, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


@dataclass(frozen=True)
class Fragment:
    """A piece of a statement's text as the user wrote it, with values in place of parameters."""

    text: str
    place: Place
