"""What ``advise`` answers with: findings with numbers, and for each the remedies, the cheapest first.

Decision 0166.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from headwater.definitions.finding import Severity


class Place(StrEnum):
    """Where a setting is written."""

    SPEC = "pipeline.yml"
    READ = "the read of the source"
    DECORATOR = "the table's decorator"
    RULES = "above the table's function"
    QUERY = "the query"


@dataclass(frozen=True)
class Setting:
    """Text to write as it stands. ``instead_of``: what it replaces, where something has to go for it."""

    place: Place
    text: str
    instead_of: str = ""

    def __str__(self) -> str:
        replaced = f" (instead of {self.instead_of})" if self.instead_of else ""
        return f"{self.text}{replaced}"


@dataclass(frozen=True)
class Remedy:
    """Something to do, and what it costs. ``settings`` first, then ``commands``; either may be empty."""

    what: str
    cost: str
    settings: tuple[Setting, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The remedy in a line: what to do, and the text to write or run."""
        parts = [f"{setting.place}: {setting}" for setting in self.settings]
        steps = "; then ".join([*parts, *self.commands])
        return f"{self.what}: {steps}" if steps else self.what


@dataclass(frozen=True)
class Advice:
    """A finding. ``flow`` is empty where it is about a table as a whole.

    ``code`` never changes its meaning; docs/advice.md has a section on each. ``remedies`` are in the order in which to try them.
    """

    code: str
    severity: Severity
    dataset: str
    flow: str
    message: str
    evidence: tuple[str, ...]
    remedies: tuple[Remedy, ...]

    @property
    def subject(self) -> str:
        """What it is about, for people."""
        return self.dataset if self.flow in ("", self.dataset) else f"{self.dataset} ({self.flow})"

    @property
    def line(self) -> str:
        """The finding and its first remedy in one line."""
        numbers = f" ({self.evidence[0]})" if self.evidence else ""
        remedy = f" {self.remedies[0].line}" if self.remedies else ""
        return f"{self.subject}: {self.message}{numbers}.{remedy}"

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        remedies = [
            {**asdict(remedy), "settings": [_plain(s) for s in remedy.settings]} for remedy in self.remedies
        ]
        return {**asdict(self), "severity": str(self.severity), "remedies": remedies}


def _plain(setting: Setting) -> dict[str, str]:
    return {"place": str(setting.place), "text": setting.text, "instead_of": setting.instead_of}
