"""Replace rows by those of a batch with the same key and a higher sequence (Lakeflow's REPLACE USING flows)."""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headwater.definitions.flow import Replacement
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_merge import committing, same_key
from headwater_spark.plans.names import quoted

_RANK = "__headwater_rank"
_LEAVES = "__headwater_leaves"


@dataclass(frozen=True)
class DeltaReplace:
    """Keeps, for each key, all rows with the highest sequence that ever arrived; NULL is the lowest.

    The order and the size of batches therefore make no difference. Rows with the same key and sequence are all kept.
    """

    table: Place
    replacement: Replacement
    passes: int = 3

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return transaction.is_in(self.table)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Replace in one commit; does nothing if the table already has the transaction."""
        keys, sequence = self.replacement.keys, self.replacement.sequence
        table = DeltaTable.forPath(rows.sparkSession, str(self.table))
        by = [F.col(quoted(key)) for key in keys]
        order = Window.partitionBy(*by).orderBy(F.col(quoted(sequence)).desc_nulls_last())
        newest = rows.withColumn(_RANK, F.rank().over(order)).where(F.col(_RANK) == 1).drop(_RANK)
        # A late row is left out: the table has one with a higher sequence.
        present = table.toDF().alias("t")
        arriving = newest.alias("s").join(present, same_key(keys) & _lower("s", "t", sequence), "left_anti")
        leaving = newest.dropDuplicates(list(keys))
        source = arriving.withColumn(_LEAVES, F.lit(False)).unionByName(
            leaving.withColumn(_LEAVES, F.lit(True))
        )
        merge = (
            table.alias("t")
            .merge(source.alias("s"), same_key(keys) & F.col(f"s.{_LEAVES}"))
            .withSchemaEvolution()
            .whenMatchedDelete(_lower("t", "s", sequence))
            .whenNotMatchedInsert(
                condition=~F.col(f"s.{_LEAVES}"),
                values={quoted(name): F.col(quoted("s", name)) for name in rows.columns},
            )
        )
        with committing(rows.sparkSession, transaction):
            merge.execute()


def _lower(left: str, right: str, sequence: str) -> Column:
    low, high = F.col(quoted(left, sequence)), F.col(quoted(right, sequence))
    return F.coalesce(low < high, low.isNull() & high.isNotNull())
