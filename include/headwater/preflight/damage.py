"""The finding of a check: its error, the evidence, and possible repairs, safest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headwater.errors import HeadwaterError


class Repair(StrEnum):
    """The actions of ``headwater repair``."""

    MEND = "mend"
    REBUILD = "rebuild"
    REWIND = "rewind"
    RESTORE = "restore"
    NEW_EPOCH = "new-epoch"
    FULL_REFRESH = "full-refresh"


@dataclass(frozen=True)
class Damage:
    """One finding.

    ``evidence``: what was seen, one fact a line. ``repairs``: what may help, the safest first.
    ``mend``: repairs it in place and says what it did; given where that is possible without losing or doubling
    a row. ``unasked``: whether the next start does so automatically. ``blocks``: whether the flow must not start.
    """

    error: HeadwaterError
    evidence: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()
    mend: Callable[[], str] | None = None
    unasked: bool = True
    blocks: bool = True

    @property
    def condition(self) -> str:
        """The name of the condition."""
        return self.error.condition

    @property
    def mends_itself(self) -> bool:
        """Whether the next start repairs it automatically."""
        return self.mend is not None and self.unasked
