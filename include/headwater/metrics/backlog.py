from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Backlog:
    """What a flow has not read yet. A None means not known, or not meaningful for the kind of source.

    ``seconds``: the age of the oldest thing unread, 0 where there is none. ``versions``: unread commits that
    changed data. ``moved``: whether there is anything to read. ``unknown``: why it is not known, where it is not.
    """

    records: int | None = None
    bytes: int | None = None
    files: int | None = None
    versions: int | None = None
    seconds: float | None = None
    moved: bool | None = None
    unknown: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The backlog as JSON values."""
        return asdict(self)

    @classmethod
    def because(cls, reason: str, *, moved: bool | None = None) -> Backlog:
        """A backlog of unknown size."""
        return cls(moved=moved, unknown=reason)


def total(parts: Iterable[Backlog]) -> Backlog:
    """The backlog over several sources: sums, the greatest age, and unknown wherever one part is."""
    backlogs = list(parts)
    unknown = [part.unknown for part in backlogs if part.unknown]
    moved = any(part.moved for part in backlogs) or (
        None if any(part.moved is None for part in backlogs) else False
    )
    ages = [part.seconds for part in backlogs if part.seconds is not None]
    sized = [part for part in backlogs if part.unknown is None]
    return Backlog(
        None if unknown else _sum(part.records for part in sized),
        None if unknown else _sum(part.bytes for part in sized),
        None if unknown else _sum(part.files for part in sized),
        None if unknown else _sum(part.versions for part in sized),
        max(ages, default=None),
        moved,
        "; ".join(dict.fromkeys(unknown)) or None,
    )


def _sum(values: Iterable[int | None]) -> int | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
