from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.change_feed.change_filter import ChangeFilter
from headwater.delta_log.versions import table_head
from headwater.errors import SourceUnreachable
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.conditions.change_feed import ChangeFeedCondition
from headwater_airflow.roots import table_name, warehouse_table
from headwater_airflow.sensors.waiting import WaitingSensor, whole_number


class ChangeFeedSensor(WaitingSensor):
    """Waits until enough rows of a Delta table have changed after a version.

    The result is the range of versions with its counts by type of change. Commits that change no rows (optimize, vacuum)
    do not count. To have a DAG run on every change, schedule it on a ``DeltaTableAsset`` instead.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        after_version: changes after this one count; a number or a template of one.
        types: of change that count: insert, update, delete; all where none is given.
        columns: an update counts only if it changes one of these.
        min_rows: how many rows have to change.

    """

    template_fields: Sequence[str] = ("after_version",)

    def __init__(
        self,
        *,
        table: str,
        after_version: int | str,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        min_rows: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        table_name(table)
        self.table = table
        self.after_version = after_version
        self.change_filter = ChangeFilter.checked(types, columns, min_rows)

    def condition(self) -> ChangeFeedCondition:
        """What is waited for."""
        change_filter, after_version = self.change_filter, whole_number("after_version", self.after_version)
        try:
            head = table_head(warehouse_table(self.table))
        except (SourceUnreachable, StoreUnreachable) as error:
            # Its first look says which table it is then; only one that is recreated before that is not noticed.
            self.log.info(str(error))
            head = None
        return ChangeFeedCondition(
            self.table,
            after_version,
            head.table_id if head else None,
            list(change_filter.types),
            list(change_filter.columns),
            change_filter.min_rows,
        )
