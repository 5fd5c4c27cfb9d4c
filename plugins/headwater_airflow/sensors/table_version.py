from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater_airflow.conditions.table_version import TableVersionCondition
from headwater_airflow.roots import table_name
from headwater_airflow.sensors.waiting import WaitingSensor, whole_number


class TableVersionSensor(WaitingSensor):
    """Waits until a Delta table has reached a version; the result is its version and Delta's id of the table.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        version: the version to wait for; a number or a template of one.

    """

    template_fields: Sequence[str] = ("version",)

    def __init__(self, *, table: str, version: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        table_name(table)
        self.table = table
        self.version = version

    def condition(self) -> TableVersionCondition:
        """What is waited for."""
        return TableVersionCondition(self.table, whole_number("version", self.version))
