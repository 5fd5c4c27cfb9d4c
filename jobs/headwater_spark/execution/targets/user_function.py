"""Pass a batch to the user's own function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from headwater.errors import FlowFailed
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.facade.tables_by_name import FindTable, tables_by_name

APPLICATION = "headwater.txnAppId"


@dataclass(frozen=True)
class UserFunction:
    """Calls ``function(rows, batch_id)``, at least once for each batch.

    The session of the rows has the flow's transaction id, for the function's own writes. ``find_table``: gives the folder
    of a table by its name, for ``DeltaTable.forName``.
    """

    function: Callable[[DataFrame, int], Any]
    find_table: FindTable
    # It may write the rows to several places: all get the same rows, and the source is read once.
    passes: int = 2

    def has(self, transaction: BatchTransaction) -> bool:  # noqa: ARG002 - the protocol's
        """What the function did is not known."""
        return False

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Call the function; raises whatever it raises, and FlowFailed where it calls exit."""
        rows.sparkSession.conf.set(APPLICATION, transaction.application)
        try:
            with tables_by_name(self.find_table):
                self.function(rows, transaction.batch_id)
        except SystemExit as error:
            # It would end the thread that answers Spark, which would wait for the answer for ever.
            raise FlowFailed(
                f"The sink's function called exit({'' if error.code is None else error.code}) in batch {transaction.batch_id}.",
                remedy="Raise an error where the batch can't be written; it is sent again by the next update.",
            ) from None
