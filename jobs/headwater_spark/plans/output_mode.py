"""How the rows of a stream reach their target: appended, merged by key, or replaced whole."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.definitions.output_kind import OutputKind


@dataclass(frozen=True)
class OutputMode:
    """``kind``: what the rows do to the table's; ``keys``: the columns by which rows find those they replace."""

    kind: OutputKind = OutputKind.APPEND
    keys: tuple[str, ...] = ()
