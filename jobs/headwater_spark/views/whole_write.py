"""All rows of a view written anew, in the place of the files that its log names.

Delta's own overwrite makes Spark load the table's whole state to learn which files go, and whether it has the transaction:
four jobs before a row is written. The log says both.

Decision 0206.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.delta_log.file_bounds import table_files
from headwater.delta_log.table_history import head_version, table_exists
from headwater.storage.place import Place
from headwater_spark.auto_cdc.on_driver.look_up import is_plain_table
from headwater_spark.auto_cdc.on_driver.rows import is_atomic
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, in_own_session
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.file_rewrite import DataFile, file_rewrite
from headwater_spark.views.stored_types import stored_schema_of

# More files than this are left to Delta: each is named to it one by one.
MAX_FILES = 500


@dataclass(frozen=True)
class WholeWrite:
    """Replaces all rows of a table. ``plain``: Delta's own command, where the table or the rows are more than files of columns."""

    plain: DeltaOverwrite
    passes: int = 1

    @property
    def _table(self) -> Place:
        return self.plain.table

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return self.plain.has(transaction)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Write in one commit."""
        if not self._written(rows, transaction):
            self.plain.write(rows, transaction)

    def _written(self, rows: DataFrame, transaction: BatchTransaction) -> bool:
        """Whether it was done by naming the files; if not, nothing is written."""
        if not (self.plain.once and self.plain.condition is None and table_exists(self._table)):
            return False
        if not is_plain_table(self._table) or self.plain.partition_columns:
            return False
        version = head_version(self._table)
        if not same_columns(rows.schema, stored_schema_of(self._table)):
            return False
        files = table_files(self._table, version, ())
        # A table without rows may stay as it is, and its commit has to be there all the same.
        if not files or len(files) > MAX_FILES:
            return False
        gone = [DataFile(file.path, file.bytes, file.modified, file.records or 0) for file in files]
        rows = in_own_session(rows)
        with file_rewrite(rows.sparkSession, self._table, version, gone, transaction) as opened:
            if isinstance(opened, str):
                return False
            opened.put(rows, None, transaction, whole=True, rows_per_file=self.plain.rows_per_file)
        return True


def same_columns(rows: StructType, stored: StructType) -> bool:
    """Whether a table's columns are those of its new rows, one by one, with their comments: then nothing of it changes but files."""
    plain = all(is_atomic(field.dataType) for field in rows.fields)
    one, other = (
        [(field.name, field.dataType.simpleString(), field.metadata or {}) for field in schema.fields]
        for schema in (rows, stored)
    )
    return plain and one == other
