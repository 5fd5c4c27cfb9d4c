from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.counts import TYPES
from headwater.definitions.names import check_name
from headwater.errors import UsageError


@dataclass(frozen=True)
class ChangeFilter:
    """Which changes should wake a reader.

    Attributes:
        types: of change: insert, update, delete; empty: any.
        columns: an update counts only if it changes one of these; empty: any. Inserts and deletes change all.
        min_rows: so many rows have to change; they add up over commits.
        quiet_seconds: wait until the table has had no commit for so long.

    """

    types: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    min_rows: int = 1
    quiet_seconds: float = 0.0

    @classmethod
    def checked(
        cls,
        types: Iterable[str] = (),
        columns: Iterable[str] = (),
        min_rows: int = 1,
        quiet_seconds: float = 0.0,
    ) -> ChangeFilter:
        """The filter of these values.

        Raises:
            UsageError, InvalidName: if one of them has no meaning.

        """
        chosen = tuple(dict.fromkeys(types))
        unknown = [name for name in chosen if name not in TYPES]
        if unknown:
            raise UsageError(
                f"There is no type of change {unknown[0]!r}.", remedy=f"Types: {', '.join(TYPES)}."
            )
        if min_rows < 1 or quiet_seconds < 0:
            raise UsageError("min_rows must be 1 or more, quiet_seconds 0 or more.")
        named = tuple(check_name(name, "column") for name in dict.fromkeys(columns))
        return cls(chosen, named, int(min_rows), float(quiet_seconds))

    def matching_rows(self, changes: ChangeRange) -> int | None:
        """The rows of the range that count; None where that is not known."""
        return changes.counts.rows(self.types or TYPES)

    def lets_pass(self, changes: ChangeRange) -> bool:
        """Whether enough has changed. Where the log does not say, it counts as enough: no change may be missed."""
        rows = self.matching_rows(changes)
        return changes.changes_data and (rows is None or rows >= self.min_rows)
