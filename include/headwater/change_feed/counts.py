"""Rows by type of change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

TYPES = ("insert", "update", "delete")


@dataclass(frozen=True)
class ChangeCounts:
    """Inserted, updated and deleted rows. None: there may be some, and the log does not say how many."""

    insert: int | None = 0
    update: int | None = 0
    delete: int | None = 0

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        return ChangeCounts(
            _sum(self.insert, other.insert), _sum(self.update, other.update), _sum(self.delete, other.delete)
        )

    def rows(self, types: Iterable[str] = TYPES) -> int | None:
        """The rows of the given types, None where one is not known."""
        total: int | None = 0
        for name in types:
            total = _sum(total, getattr(self, name))
        return total

    def as_dict(self) -> dict[str, int | None]:
        """The counts as JSON values."""
        return asdict(self)


NO_CHANGES = ChangeCounts()


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
