"""How the rows of a stream reach their target: appended, merged by key, or replaced whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputMode:
    """``name``: append, update, complete, replace or changes; ``keys``: the columns that match rows with those they replace."""

    name: str = "append"
    keys: tuple[str, ...] = ()

    @property
    def query_mode(self) -> str:
        """Spark's output mode of the query."""
        return "append" if self.name in ("replace", "changes") else self.name
