"""Merge a batch of change events into a streaming table (AUTO CDC)."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes, check_unchanged, expire
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.delta_writes.batch_transaction import BatchTransaction


class AutoCdc:
    """Takes the batches of a change flow. ``location``: the flow's line, for errors."""

    # The rows are reduced and cached by the merge itself.
    passes = 1

    def __init__(self, target: ChangeTarget, columns: ChangeColumns, location: object) -> None:
        self._target = target
        self._columns = columns
        self._location = location
        self._ready = False

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return transaction.is_in(self._target.path)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Merge in one commit; does nothing if the table already has the transaction."""
        if not self._ready:
            check_unchanged(self._columns, self._target, self._location, spark=rows.sparkSession)
            expire(rows.sparkSession, self._columns, self._target)
            self._ready = True
        apply_changes(rows, self._columns, self._target, transaction, self._location)
