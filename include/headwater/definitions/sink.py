from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class SinkKind(StrEnum):
    """What takes the rows."""

    DELTA = "delta"
    KAFKA = "kafka"
    # A format that the user registered (a Python data source), or one of Spark's own for trying things out.
    OTHER = "other"
    # The user's own function, called with each batch.
    FUNCTION = "function"


@dataclass(frozen=True)
class Sink:
    """Where rows leave the pipeline. ``options`` go to Spark as they are; ``function`` is of kind FUNCTION only."""

    kind: SinkKind
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    function: Callable[[Any, int], Any] | None = None

    def option(self, name: str) -> str | None:
        """The value of an option; names are case-insensitive."""
        return next((value for key, value in self.options.items() if key.lower() == name.lower()), None)
