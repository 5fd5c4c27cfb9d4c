"""Wakes DAGs when a table's rows change. It runs in the triggerer as the watcher of an asset."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_watch import ChangeWatch
from headwater.storage.place import Place
from headwater_airflow.roots import storage_folder, warehouse_table
from headwater_airflow.triggers.watching import WatchTrigger, seconds_of


class ChangeFeedTrigger(WatchTrigger):
    """Emits each range of changes of a table. Whoever is woken reads with ``@changes``, for which a second call is empty.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        types, columns, min_rows, quiet_seconds: as in ChangeFilter.

    Between two looks at the table's log lie HEADWATER_CHANGE_POLL_SECONDS (of the triggerer's environment; 5).

    """

    arguments = ("table", "types", "columns", "min_rows", "quiet_seconds")

    def __init__(
        self,
        table: str,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        min_rows: int = 1,
        quiet_seconds: float = 0.0,
    ) -> None:
        super().__init__()
        self.table = table
        self.types = list(types)
        self.columns = list(columns)
        self.min_rows = min_rows
        self.quiet_seconds = quiet_seconds

    def watched(self) -> str:
        """The table."""
        return self.table

    def poll_seconds(self) -> float:
        """As the environment says."""
        return seconds_of("HEADWATER_CHANGE_POLL_SECONDS", 5.0)

    def open_watch(self) -> ChangeWatch:
        """The watch over the table's log."""
        change_filter = ChangeFilter.checked(self.types, self.columns, self.min_rows, self.quiet_seconds)
        memory = watch_file(self.table, change_filter)
        return ChangeWatch(self.table, warehouse_table(self.table), change_filter, memory)


def watch_file(table: str, change_filter: ChangeFilter) -> Place:
    """Where a watch records what was delivered; another filter is another watch."""
    digest = hashlib.sha256(repr(change_filter).encode()).hexdigest()[:12]
    return storage_folder() / "change_feeds" / "watches" / f"{table}.{digest}.json"
