"""Append a batch to a Delta table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.known_transactions import transaction_options


@dataclass(frozen=True)
class DeltaAppend:
    """Appends to a table, once for each transaction.

    ``query_id``: of the streaming query, under which the Delta sink itself may have written a batch earlier.
    """

    table: Place
    partition_columns: tuple[str, ...] = ()
    passes: int = 1
    query_id: str | None = None

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        ids = (transaction.application, self.query_id)
        return any(id_ and has_transaction(self.table, id_, transaction.batch_id) for id_ in ids)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Append the rows in one commit; does nothing if the table already has the transaction."""
        once = transaction_options(rows.sparkSession, self.table, transaction)
        writer = (
            rows.write.format("delta")
            .mode("append")
            .options(mergeSchema="true", userMetadata=transaction.user_metadata, **once)
        )
        if self.partition_columns:
            writer = writer.partitionBy(*self.partition_columns)
        writer.save(str(self.table))
