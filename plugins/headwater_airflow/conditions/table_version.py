from __future__ import annotations

from dataclasses import dataclass

from headwater.delta_log.versions import table_head
from headwater_airflow.conditions.condition import Condition, Sighting
from headwater_airflow.roots import warehouse_table


@dataclass(frozen=True)
class TableVersionCondition(Condition):
    """The table ``[catalog.]schema.table`` has reached a version."""

    table: str
    version: int

    def look(self) -> Sighting:
        """Read the head of the table's log."""
        head = table_head(warehouse_table(self.table))
        if head is None:
            return Sighting(met=False, summary=f"There is no table {self.table} yet.")
        payload = {"table": self.table, "table_id": head.table_id, "version": head.version}
        return Sighting(head.version >= self.version, f"{self.table} is at version {head.version}.", payload)
