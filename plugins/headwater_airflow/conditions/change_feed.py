from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import FeedPosition, range_after
from headwater.delta_log.versions import table_head
from headwater.errors import ChangeFeedBroken
from headwater_airflow.conditions.condition import Condition, Sighting
from headwater_airflow.roots import warehouse_table


@dataclass(frozen=True)
class ChangeFeedCondition(Condition):
    """Enough has changed in the table ``[catalog.]schema.table`` after a version.

    ``table_id``: the table that the version belongs to (Delta's id); if it is recreated meanwhile, waiting is
    in vain. ``types``, ``columns``, ``min_rows``: as in ChangeFilter.
    """

    table: str
    after_version: int
    table_id: str | None = None
    types: Sequence[str] = ()
    columns: Sequence[str] = ()
    min_rows: int = 1

    def look(self) -> Sighting:
        """Count what has changed, from the table's log and change files."""
        path = warehouse_table(self.table)
        head = table_head(path)
        if head is None:
            return Sighting(met=False, summary=f"There is no table {self.table} yet.")
        if self.table_id not in (None, head.table_id):
            raise ChangeFeedBroken(f"The table {self.table} was recreated while its changes were waited for.")
        after = FeedPosition(head.table_id, min(self.after_version, head.version))
        change_filter = ChangeFilter.checked(self.types, self.columns, self.min_rows)
        changes = range_after(self.table, path, after, columns=change_filter.columns)
        if changes is None or not change_filter.lets_pass(changes):
            rows = change_filter.matching_rows(changes) if changes else 0
            summary = f"{rows} rows of {self.table} have changed since version {self.after_version}."
            return Sighting(met=False, summary=summary)
        return Sighting(met=True, summary=f"{self.table} has changed.", payload=changes.as_dict())
