"""Groups of new rows, merged into the groups of a view that has them already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, in_own_session
from headwater_spark.delta_writes.delta_merge import committing, same_key
from headwater_spark.plans.names import quoted
from headwater_spark.views.appended_rows import Merging
from headwater_spark.views.rewritten_groups import rewrite_groups


@dataclass(frozen=True)
class MergedGroups:
    """Brings groups of the table at ``table`` up to date. ``columns``: the rows' columns, and how each is merged."""

    table: Place
    columns: Sequence[tuple[str, Merging]]
    passes: int = 1

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return has_transaction(self.table, transaction.application, transaction.batch_id)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Merge in one commit."""
        keys = [name for name, how in self.columns if how is Merging.KEY]
        types = {field.name: field.dataType for field in rows.schema.fields}
        values = {
            name: _merged(name, how).cast(types[name]) for name, how in self.columns if how is not Merging.KEY
        }
        if rewrite_groups(self.table, rows, keys, values, transaction):
            return
        rows = in_own_session(rows)
        merged: dict[str, str | Column] = {quoted(name): value for name, value in values.items()}
        target = DeltaTable.forPath(rows.sparkSession, str(self.table)).alias("t")
        merge = target.merge(rows.alias("s"), same_key(keys))
        if merged:
            merge = merge.whenMatchedUpdate(set=merged)
        merge = merge.whenNotMatchedInsert(
            values={quoted(name): F.col(f"s.{quoted(name)}") for name, _ in self.columns}
        )
        with committing(rows.sparkSession, transaction, fixed_source=True):
            merge.execute()


def _merged(name: str, how: Merging) -> Column:
    there, new = F.col(f"t.{quoted(name)}"), F.col(f"s.{quoted(name)}")
    if how is Merging.LEAST:
        return F.least(there, new)
    if how is Merging.GREATEST:
        return F.greatest(there, new)
    # A sum over no value at all is NULL.
    return F.when(there.isNull(), new).when(new.isNull(), there).otherwise(there + new)
