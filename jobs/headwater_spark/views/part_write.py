"""New rows of a part of a view, written in the pass that leaves that part out of the files that may have rows of it.

Delta's own overwrite of a part searches for its rows first, reads their files again, and writes the new rows by another
job. Which files may have rows of the part the log says; they are read once, and one job writes everything.

Decision 0170.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.delta_log.file_bounds import Sought, TableFile, table_files
from headwater.delta_log.table_history import head_version
from headwater.storage.place import Place
from headwater_spark.auto_cdc.on_driver.look_up import is_plain_table
from headwater_spark.delta_writes.batch_transaction import BatchTarget, BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, DataFile, file_rewrite
from headwater_spark.plans.names import quoted
from headwater_spark.views.stored_types import StoredTable, stored_table

# More files than this are left to Delta: each is named to it one by one.
MAX_FILES = 500


@dataclass(frozen=True)
class PartWrite:
    """Replaces the rows of a table that meet a condition; without one it appends.

    Where the table has features that rows would have to be carried along with, or other columns than the rows, or other
    writers have been there since, Delta's own commands do it.

    Args:
        condition: SQL text over the table's columns.
        sought: the values that rows which meet it have, as far as files can be chosen by them.
    """

    table: Place
    partition_columns: tuple[str, ...] = ()
    condition: str | None = None
    sought: Sequence[Sought] = ()
    passes: int = 1

    @property
    def _plain(self) -> BatchTarget:
        if self.condition is None:
            return DeltaAppend(self.table, self.partition_columns)
        return DeltaOverwrite(self.table, self.partition_columns, self.condition)

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return self._plain.has(transaction)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write in one commit."""
        if not self._written(rows, transaction):
            self._plain.write(rows, transaction)

    def _written(self, rows: DataFrame, transaction: BatchTransaction) -> bool:
        """Whether it was done in one pass; if not, nothing is written."""
        if not is_plain_table(self.table):
            return False
        version, stored = head_version(self.table), stored_table(self.table)
        if {f.name: f.dataType.simpleString() for f in rows.schema.fields} != stored.types:
            return False
        files = self._files(version)
        if files is None:
            return False
        append = self.condition is None
        with file_rewrite(
            rows.sparkSession, self.table, version, files, transaction, append=append
        ) as opened:
            if isinstance(opened, str):
                return False
            together = (
                self._together(rows, opened.rows, stored)
                if files
                else rows.select(*map(quoted, stored.types))
            )
            opened.put(together, self.condition, transaction)
        return True

    def _files(self, version: int) -> list[DataFile] | None:
        if self.condition is None:
            return []
        every = table_files(self.table, version, {one.column for one in self.sought})
        if every is None:
            return None
        chosen = [file for file in every if file.may_have(self.sought)]
        return [_as_data_file(file) for file in chosen] if len(chosen) <= MAX_FILES else None

    def _together(self, rows: DataFrame, there: DataFrame, stored: StoredTable) -> DataFrame:
        """The new rows, and those of the files that stay; with a change feed also its rows."""
        names = [quoted(name) for name in stored.types]
        goes = F.coalesce(F.expr(f"({self.condition})"), F.lit(False))
        if not stored.has_change_feed:
            return there.where(~goes).select(*names).unionByName(rows.select(*names))
        # Each row is evaluated once, and stands there once for the table and once for the feed.
        kinds = F.explode(F.array(F.lit(None).cast("string"), F.lit("insert"))).alias(CHANGE_TYPE)
        kept = there.select(*names, F.when(goes, F.lit("delete")).alias(CHANGE_TYPE))
        return kept.unionByName(rows.select(*names, kinds))


def _as_data_file(file: TableFile) -> DataFile:
    return DataFile(file.path, file.bytes, file.modified, file.records or 0)
