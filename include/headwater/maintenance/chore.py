"""What maintenance consists of: chores that say what they would do before they do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from headwater.storage.place import Place


class ChoreKind(StrEnum):
    """The kinds of work, in the order in which they are done."""

    OPTIMIZE = "optimize"
    CHECKPOINT = "checkpoint"
    VACUUM = "vacuum"
    EVENT_LOG = "event-log"
    EPOCHS = "epochs"
    SNAPSHOTS = "snapshots"
    ORPHANS = "orphans"


class Engine(StrEnum):
    """What does a step: this process (delta-rs and the file system), or a Spark driver."""

    HERE = "here"
    SPARK = "spark"


@dataclass(frozen=True)
class Step:
    """One thing to do. ``files``, ``bytes``, ``rows``: what it touches; None where that is not known beforehand."""

    kind: ChoreKind
    subject: str
    what: str
    files: int = 0
    bytes: int = 0
    rows: int | None = None
    engine: Engine = Engine.HERE

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON values."""
        return {key: str(v) if isinstance(v, StrEnum) else v for key, v in asdict(self).items()}


@dataclass(frozen=True)
class LeftOut:
    """What would be due and is not done, and why. ``unknown``: what is due could not be found out."""

    kind: ChoreKind
    subject: str
    why: str
    unknown: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The remark as JSON values."""
        return {"kind": str(self.kind), "subject": self.subject, "why": self.why}


Finding = Step | LeftOut | None


class Rewriter(Protocol):
    """Rewrites a table's files by a Spark driver; returns what became of it, in words."""

    def __call__(self, table: Place, z_order: Sequence[str]) -> str:
        """Rewrite, in the order of these columns if any."""
        ...


class Chore(Protocol):
    """A kind of work on one subject (a table, or the pipeline's storage).

    ``look`` changes nothing. ``carry_out`` does what ``look`` has just found, and returns it in words; the
    pipeline's lease is held around both.
    """

    @property
    def kind(self) -> ChoreKind:
        """Of the work."""
        ...

    @property
    def subject(self) -> str:
        """The table's name, or a word for the storage."""
        ...

    def look(self) -> Finding:
        """What is due, None for nothing."""
        ...

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:
        """Do it; ``rewrite`` is there for steps of Spark."""
        ...


@dataclass(frozen=True)
class MaintenanceOptions:
    """What the caller asks for.

    ``tables``: only these (all, and the storage, if empty). ``kinds``: only these (all if empty).
    ``retention``: how long removed files stay; else ``maintenance`` of ``pipeline.yml``, else each table's property.
    ``keep``: how long old epochs, copies and leftovers stay; else ``maintenance.keep``.
    """

    tables: tuple[str, ...] = ()
    kinds: tuple[ChoreKind, ...] = ()
    retention: timedelta | None = None
    keep: timedelta | None = None

    def wants(self, kind: ChoreKind) -> bool:
        """Whether a kind of work is requested."""
        return not self.kinds or kind in self.kinds
