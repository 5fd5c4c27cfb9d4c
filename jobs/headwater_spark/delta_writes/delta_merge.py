"""Merge a batch into a Delta table by key: rows of an aggregation that changed replace their earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.names import quoted
from headwater_spark.plans.partition_texts import losing_texts, without_lost_texts


@dataclass(frozen=True)
class DeltaMerge:
    """Updates the rows of keys that the table has and inserts the others. A batch has a key at most once; NULL is a key.

    ``partitions``: the columns that the table is partitioned by; a key with a text that they do not keep fails the batch.
    """

    table: Place
    keys: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    passes: int = 1  # Delta itself materializes the rows while it merges

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return transaction.is_in(self.table)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Merge in one commit; does nothing if the table already has the transaction."""
        target = DeltaTable.forPath(rows.sparkSession, str(self.table)).alias("t")
        if self.partitions:
            keys = [(field.name, field.dataType) for field in rows.schema.fields if field.name in self.keys]
            rows = without_lost_texts(rows, losing_texts(keys, self.partitions))
        merge = (
            target.merge(rows.alias("s"), same_key(self.keys))
            .withSchemaEvolution()
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
        )
        with committing(rows.sparkSession, transaction):
            merge.execute()


def same_key(keys: Sequence[str], left: str = "t", right: str = "s") -> Column:
    """The condition that two rows have the same key; NULL equals NULL."""
    condition = F.lit(True)
    for key in keys:
        condition = condition & F.col(quoted(left, key)).eqNullSafe(F.col(quoted(right, key)))
    return condition


@contextmanager
def committing(
    session: SparkSession, transaction: BatchTransaction, *, fixed_source: bool = False
) -> Iterator[None]:
    """Have Delta's commits inside the block carry the transaction: merges and deletes take it only from settings.

    Args:
        session: the batch's own, which no other query uses.
        fixed_source: whether a merge's source gives the same rows however often it is read; Delta then need not copy it.
    """
    settings = {
        "spark.databricks.delta.write.txnAppId": transaction.application,
        "spark.databricks.delta.write.txnVersion": str(transaction.batch_id),
        "spark.databricks.delta.commitInfo.userMetadata": transaction.user_metadata,
    }
    with commit_settings(session, settings, fixed_source=fixed_source):
        yield


@contextmanager
def commit_settings(
    session: SparkSession, settings: Mapping[str, str], *, fixed_source: bool
) -> Iterator[None]:
    """Set what Delta's commits inside the block carry, in the session's settings; they are unset after it.

    Args:
        session: the batch's own, which no other query uses.
        settings: what a commit carries.
        fixed_source: as of ``committing``.
    """
    merge = {"spark.databricks.delta.merge.materializeSource": "none"} if fixed_source else {}
    settings = {**settings, **merge}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key in settings:
            session.conf.unset(key)
