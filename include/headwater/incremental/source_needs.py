"""What a source of a materialized view would need for its changes to be followed, or to be followed at less cost."""

from __future__ import annotations

from dataclasses import dataclass

CHANGE_FEED = "delta.enableChangeDataFeed"
_KEY = "a column of the result that is a key of each group, window partition or join on the way of its rows"


@dataclass(frozen=True)
class SourceNeeds:
    """What is known of a source.

    Args:
        is_table: it is a Delta table.
        in_query: the query reads it, not only a subquery in an expression.
        grown: new rows of it can be followed; ``changed``: other changes, too.
        change_feed: its table has a change feed; None where there is no table yet.
    """

    is_table: bool
    in_query: bool
    grown: bool
    changed: bool
    change_feed: bool | None = None

    @property
    def text(self) -> str:
        """What it needs, in a few words; ``nothing`` where all is there."""
        if not self.is_table:
            return "a Delta table in its place: whatever changes in it recomputes the view"
        if not self.in_query:
            return "a join in place of the subquery: whatever changes in it recomputes the view"
        if not self.changed:
            return f"nothing for new rows; for others {_KEY}" if self.grown else _KEY
        if self.change_feed is False:
            return (
                f"nothing; with {CHANGE_FEED}=true changed rows are read, and not the files that they lie in"
            )
        return "nothing"
