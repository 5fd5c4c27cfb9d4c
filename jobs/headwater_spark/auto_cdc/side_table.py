"""What AUTO CDC must remember and readers must not see: tombstones, sequences, superseded events.

It is a Delta table of its own beside the target. A batch commits here first and to the target second; both commits name the
batch. A crash between the two leaves this table one commit ahead; ``recover`` reverts that commit, so that every batch is
decided over the state before it.

Decision 0070.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import has_transaction, table_exists
from headwater.storage.delta_tables import append, delta_table
from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_columns import OWN
from headwater_spark.auto_cdc.change_events import ROW, ChangeBatch, fitted
from headwater_spark.auto_cdc.column_types import fitted_type
from headwater_spark.auto_cdc.on_driver.look_up import keys_about, rows_about
from headwater_spark.auto_cdc.on_driver.rows import Rows, is_atomic
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.column_mapping import BY_NAME, map_columns
from headwater_spark.delta_writes.delta_merge import commit_settings
from headwater_spark.delta_writes.tables import remove_empty_logs
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import needs_column_mapping

RECORDED_AT = f"{OWN}recorded_at"
# Whether a row is deleted by a merge.
REMOVED = f"{OWN}removed"
# How long deletes are remembered unless the table's property says otherwise: Lakeflow's two days.
RETENTION = timedelta(days=2)
# An append-only table with more files than this is compacted at the start of a run.
MANY_FILES = 50
# The writer's version of tables without any feature.
_PLAIN_WRITER = 2


@dataclass(frozen=True)
class SideTable:
    """The side table of one target. ``path`` need not exist: most targets never need one."""

    spark: SparkSession
    path: Place

    @property
    def exists(self) -> bool:
        """Whether anything was ever remembered."""
        return table_exists(self.path)

    def read(self) -> DataFrame | None:
        """The rows of the current version; None where there is no table."""
        if not self.exists:
            return None
        version = self._log().version()
        return self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path))

    def rows_about(self, batch: ChangeBatch) -> DataFrame | None:
        """The rows of the current version that may be about the batch's keys, None where there is no table.

        For a flow with truncates, these are all rows, those without a key included.
        """
        if not self.exists or batch.local is None or batch.columns.truncate is not None:
            return self.read()
        remembered_keys = rows_about(self.spark, self.path, batch.columns.keys, batch.local)
        return self.read() if remembered_keys is None else remembered_keys

    def remembered_keys(self, batch: ChangeBatch) -> Any:
        """The rows that may be about the keys of a batch on the driver, as Arrow with the keys alone; None where Spark has
        to read them.
        """
        keys = batch.columns.keys
        if not self.exists:
            return batch.local.select(list(keys)).slice(0, 0)
        return None if batch.columns.truncate is not None else keys_about(self.path, keys, batch.local)

    def append_local(self, rows: Rows, transaction: BatchTransaction) -> None:
        """Add rows that are on the driver, as ``append`` does; without Spark where possible."""
        import pyarrow as pa

        if rows.table.num_rows == 0:
            return
        schema = rows.frame.schema
        plain = all(is_atomic(f.dataType) for f in schema.fields) and not needs_column_mapping(schema)
        if not plain or not self._takes_rows():
            self.append(rows.frame, transaction)
            return
        from deltalake import CommitProperties

        moment = pa.timestamp("us", "UTC")
        fields = [pa.field(f.name, moment if pa.types.is_timestamp(f.type) else f.type) for f in rows.table.schema]  # fmt: skip
        now = pa.array([datetime.now(UTC)] * rows.table.num_rows, moment)
        table = rows.table.cast(pa.schema(fields)).append_column(RECORDED_AT, now)
        if not self.exists:  # as a version of its own: see _make
            append(self.path, table.schema.empty_table(), mode="error")
        properties = CommitProperties(custom_metadata={"userMetadata": transaction.user_metadata})
        append(self.path, table, mode="append", schema_mode="merge", commit_properties=properties)

    def append(self, rows: DataFrame, transaction: BatchTransaction) -> None:
        """Add rows beside those with the same keys; a merge would take several times as long."""
        self._append(rows, transaction.user_metadata)

    def remember(self, rows: DataFrame) -> None:
        """Add rows that no batch of events brings; a later batch that is reverted leaves them."""
        self._append(rows, "")

    def _append(self, rows: DataFrame, metadata: str) -> None:
        rows = rows.withColumn(RECORDED_AT, F.current_timestamp()).coalesce(1)
        self._make(rows.schema)
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.option("userMetadata", metadata).save(str(self.path))

    def merge(
        self, changes: Rows, keys: Sequence[str], transaction: BatchTransaction, within: Column
    ) -> None:
        """Replace the rows that have the same keys as ``changes``; those whose ``__hw_removed`` is true are deleted.

        ``within``: a condition that all such rows of ``t`` meet, so that files can be skipped.
        """
        source = changes.frame.withColumn(RECORDED_AT, F.current_timestamp())
        schema = source.drop(REMOVED).schema
        self._make(schema)
        same = " AND ".join(f"{quoted('t', key)} <=> {quoted('s', key)}" for key in keys)
        values: dict[str, str | Column] = {quoted(name): quoted("s", name) for name in schema.names}
        merge = (
            DeltaTable.forPath(self.spark, str(self.path)).alias("t").merge(source.alias("s"), F.expr(same) & within)
            .withSchemaEvolution()
            .whenMatchedDelete(f"s.{REMOVED}")
            .whenMatchedUpdate(set=values)
            .whenNotMatchedInsert(f"NOT s.{REMOVED}", values=values)
        )  # fmt: skip
        with _naming_batch(self.spark, transaction, fixed_source=changes.is_local):
            merge.execute()

    def _takes_rows(self) -> bool:
        """Whether the table has no feature that another writer may not support."""
        return not self.exists or self._log().protocol().min_writer_version <= _PLAIN_WRITER

    def _make(self, schema: StructType) -> None:
        # As a version of its own, so that the first batch can be reverted, too.
        if not self.exists:
            remove_empty_logs(self.spark, self.path)
            table = DeltaTable.createIfNotExists(self.spark).location(str(self.path))
            for name, value in BY_NAME.items() if needs_column_mapping(schema) else ():
                table = table.property(name, value)
            table.addColumns(_nullable(schema)).execute()
        elif needs_column_mapping(schema):
            map_columns(self.spark, self.path)

    def compact(self, rows: DataFrame) -> None:
        """Overwrite the table with equivalent ``rows``, where it has many files."""
        if len(self._log().file_uris()) > MANY_FILES:
            rows.coalesce(1).write.format("delta").mode("overwrite").save(str(self.path))

    def compact_all(self) -> None:
        """Write the rows into one file, where they lie in many."""
        rows = self.read()
        if rows is not None:
            self.compact(rows)

    def widen(self, row: StructType) -> None:
        """Widen the types of remembered rows to those of ``row``, in a commit of its own."""
        rows = self.read()
        if rows is None or ROW not in rows.columns:
            return
        current = rows.schema[ROW].dataType
        wider = fitted_type(current, row)
        if wider is not None and wider.simpleString() != current.simpleString():
            if (
                "timestamp_ntz" in wider.simpleString()
            ):  # a feature that Delta adds unasked to new tables alone
                DeltaTable.forPath(self.spark, str(self.path)).addFeatureSupport("timestampNtz")
            widened = rows.withColumn(ROW, fitted(F.col(ROW), current, wider))
            writer = widened.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer.save(str(self.path))

    def recover(self, target: Place) -> None:
        """Revert the last commit if the target never got its batch."""
        if not self.exists:
            return
        last = self._log().history(1)[0]
        batch = _batch_of(last.get("userMetadata"))
        if batch is None or last["version"] == 0:
            return
        if not has_transaction(target, *batch):
            DeltaTable.forPath(self.spark, str(self.path)).restoreToVersion(int(last["version"]) - 1)

    def expire(self, retention: timedelta, condition: str) -> None:
        """Delete rows that meet ``condition`` and were recorded longer ago than ``retention``."""
        if not self.exists:
            return
        cutoff = datetime.now(UTC) - retention
        actions = self._log().get_add_actions(flatten=True)
        names = actions.schema.names if hasattr(actions.schema, "names") else [f.name for f in actions.schema]
        oldest = actions.column(f"min.{RECORDED_AT}").to_pylist() if f"min.{RECORDED_AT}" in names else []
        recorded = [moment for moment in oldest if moment is not None]
        if recorded and min(m if m.tzinfo else m.replace(tzinfo=UTC) for m in recorded) < cutoff:
            literal = f"timestamp'{cutoff:%Y-%m-%d %H:%M:%S.%f}+00:00'"
            table = DeltaTable.forPath(self.spark, str(self.path))
            table.delete(f"{RECORDED_AT} < {literal} AND ({condition})")

    def _log(self) -> Any:
        return delta_table(self.path)


@contextmanager
def _naming_batch(
    session: SparkSession, transaction: BatchTransaction, *, fixed_source: bool
) -> Iterator[None]:
    """Have the commit inside the block name its batch.

    It is not a transaction of Delta's: Delta would still know it after a revert, and skip the repetition.
    """
    settings = {"spark.databricks.delta.commitInfo.userMetadata": transaction.user_metadata}
    with commit_settings(session, settings, fixed_source=fixed_source):
        yield


def _batch_of(user_metadata: str | None) -> tuple[str, int] | None:
    try:
        metadata = json.loads(user_metadata or "{}")
        # A flow that runs once has one batch.
        identity = FlowIdentity(metadata["pipeline"], metadata["flow"])
        return identity.application(int(metadata["epoch"])), int(metadata.get("batch", 0))
    except (ValueError, KeyError, TypeError):
        return None


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(f.name, f.dataType) for f in schema.fields])
