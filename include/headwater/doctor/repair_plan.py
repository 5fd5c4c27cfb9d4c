"""What a repair would do, and what it would cost: printed before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from headwater.errors import RefusedForSafety
from headwater.preflight.damage import Repair

NOTHING = "no rows"

# Raises LeaseLost where another process may write.
Check: TypeAlias = Callable[[], None]


class RepairNotPossible(RefusedForSafety):
    """What a repair needs is not there, or what it would do is wrong for this flow; nothing was changed."""

    condition = "REPAIR_NOT_POSSIBLE"


# The action that each option is of.
OWNERS = {
    "batch": Repair.REWIND,
    "snapshot": Repair.RESTORE,
    **dict.fromkeys(("from_start", "from_version", "from_offsets", "from_time"), Repair.NEW_EPOCH),
}


@dataclass(frozen=True)
class RepairOptions:
    """What the caller gave: ``batch`` to go back to, a ``snapshot``, or where to begin.

    ``from_time``: ms since 1970. ``from_offsets``: one end offset a source, as the checkpoint writes them.
    """

    batch: int | None = None
    snapshot: str | None = None
    from_start: bool = False
    from_version: int | None = None
    from_offsets: tuple[Any, ...] | None = None
    from_time: int | None = None

    @property
    def begins(self) -> int:
        """How many ways to begin were given."""
        beginnings = (self.from_version, self.from_offsets, self.from_time)
        return sum(value is not None for value in beginnings) + int(self.from_start)

    def foreign_to(self, action: Repair) -> str | None:
        """The first option that was given and is of another action than this one; 0 is given, too."""
        given = (
            name for name in OWNERS if getattr(self, name) is not None and getattr(self, name) is not False
        )
        return next((name for name in given if OWNERS[name] is not action), None)


@dataclass(frozen=True)
class RepairPlan:
    """The steps in words (none where nothing is wrong), the cost in rows (or why it can't be known), and what carries it out.

    ``carry_out`` returns what was done; it is given the check of the lease, which it makes before the step that counts. ``by_update``: an update does it, Spark is needed.
    """

    action: Repair
    flow: str
    dataset: str
    steps: tuple[str, ...]
    lost: str
    doubled: str
    carry_out: Callable[[Check], str]
    by_update: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "action": str(self.action),
            "flow": self.flow,
            "dataset": self.dataset,
            "steps": list(self.steps),
            "lost": self.lost,
            "doubled": self.doubled,
        }

    def __str__(self) -> str:
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, start=1)]
        head = f"{self.action} of {self.flow} (into {self.dataset}):"
        return "\n".join([head, *steps, f"  lost: {self.lost}", f"  doubled: {self.doubled}"])
