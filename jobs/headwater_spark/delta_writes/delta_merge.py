"""Merge a batch into a Delta table by key: the rows of an aggregation that changed take the place of what they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.delta_log.table_history import has_transaction
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.names import quoted


@dataclass(frozen=True)
class DeltaMerge:
    """Updates the rows of known keys and inserts the others. A key is in a batch at most once; NULL is a key like others."""

    table: Path
    keys: tuple[str, ...]
    # Delta keeps the rows by itself while it merges.
    passes: int = 1

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the transaction."""
        return has_transaction(self.table, transaction.application, transaction.batch_id)

    def write(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Merge in one commit; nothing happens where the table has the transaction already."""
        target = DeltaTable.forPath(rows.sparkSession, str(self.table)).alias("t")
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
        name = quoted(key)
        condition = condition & F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}"))
    return condition


@contextmanager
def committing(
    session: SparkSession, transaction: BatchTransaction, *, fixed_source: bool = False
) -> Iterator[None]:
    """Let what Delta commits inside the block carry the transaction: merges and deletes take it from settings alone.

    Args:
        session: the batch's own, which no other query uses.
        fixed_source: whether a merge's source gives the same rows however often it is read. Delta need not copy it then.
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
    """Have the session's own settings say what Delta commits inside the block; they are gone behind it.

    Args:
        session: the batch's own, which no other query uses.
        settings: what a commit carries.
        fixed_source: whether a merge's source gives the same rows however often it is read. Delta need not copy it then.
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
