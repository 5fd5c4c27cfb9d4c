"""Append a batch to a Delta table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from headwater_spark.execution.foreach_batch import BatchTransaction
from headwater_spark.execution.sink_commits import has_transaction


@dataclass(frozen=True)
class DeltaAppend:
    """Appends to the table at ``table``, once for each transaction."""

    table: Path
    partition_columns: tuple[str, ...] = ()
    passes: int = 1

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return has_transaction(self.table, transaction.application, transaction.batch_id)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Append the rows in one commit; nothing happens where the table has the transaction already."""
        writer = (
            rows.write.format("delta")
            .mode("append")
            .option("mergeSchema", "true")
            .option("txnAppId", transaction.application)
            .option("txnVersion", str(transaction.batch_id))
            .option("userMetadata", transaction.user_metadata)
        )
        if self.partition_columns:
            writer = writer.partitionBy(*self.partition_columns)
        writer.save(str(self.table))
