"""Replace all rows of a table, or those that meet a condition, in one commit: readers see the old rows or the new ones."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.known_transactions import transaction_options


@dataclass(frozen=True)
class DeltaOverwrite:
    """Replaces rows of the table at ``table``.

    Args:
        condition: SQL text; the rows that meet it are replaced, None for all. The other rows keep their columns: columns
            may be added, none changes.
        new_columns: whether the table takes the columns of the new rows, where all rows are replaced.
        once: whether the commit carries the transaction, so that a second one changes nothing. A table that is
            recomputed has no batches, and its refreshes have no numbers.
        rows_per_file: a file has no more rows than this; None leaves it to Spark.
    """

    table: Place
    partition_columns: tuple[str, ...] = ()
    condition: str | None = None
    new_columns: bool = False
    once: bool = True
    passes: int = 1
    rows_per_file: int | None = None

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return self.once and transaction.is_in(self.table)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Replace the rows."""
        options = {"userMetadata": transaction.user_metadata}
        if self.once:
            options |= transaction_options(rows.sparkSession, self.table, transaction)
        if self.rows_per_file is not None:
            options["maxRecordsPerFile"] = str(self.rows_per_file)
        if self.condition is not None:
            options |= {"replaceWhere": self.condition, "mergeSchema": "true"}
        elif self.new_columns:
            options["overwriteSchema"] = "true"
        writer = rows.write.format("delta").mode("overwrite").options(**options)
        # Another table knows its own, and rows do not bring the columns that Delta generates.
        if self.partition_columns and self.new_columns:
            writer = writer.partitionBy(*self.partition_columns)
        writer.save(str(self.table))
