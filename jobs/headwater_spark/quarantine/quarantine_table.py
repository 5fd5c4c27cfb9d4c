"""Write the quarantined rows of a batch, complete, with what is known about their source."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.delta_log.table_history import table_exists
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import literal
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.known_transactions import transaction_options
from headwater_spark.delta_writes.tables import columns_of
from headwater_spark.plans.names import quoted
from headwater_spark.quarantine.unreadable_files import UnreadableFile
from headwater_spark.rules.expectations import any_broken
from headwater_spark.rules.judgement import broken_names, own_columns
from headwater_spark.rules.one_pass import ROW_TEXT
from headwater_spark.rules.quarantine_schema import own_fields
from headwater_spark.rules.source_records import JSON_OPTIONS, SOURCE, has_bytes

# Several flows may fill one quarantine concurrently: its columns grow one batch at a time.
_WRITING: defaultdict[Place, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine table at ``path`` as one flow writes to it. ``rules``: of the flow's dataset."""

    path: Place
    flow: str
    epoch: int
    update_id: str
    rules: Sequence[Expectation]

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the table has the rows of a batch."""
        return transaction.is_in(self.path)

    def hold(
        self, judged: DataFrame, transaction: BatchTransaction, files: Sequence[UnreadableFile] = ()
    ) -> None:
        """Append the rows that break a quarantine rule, and files that can't be read, under the batch's transaction."""
        with _WRITING[self.path]:
            once = transaction_options(judged.sparkSession, self.path, transaction)
            self._writer(judged, transaction, files).mode("append").options(**once).save(str(self.path))

    def hold_pending(self, judged: DataFrame, transaction: BatchTransaction, replay_id: str) -> None:
        """Append rows of a file that is being replayed: they become held when the replay is done."""
        with _WRITING[self.path]:
            pending = {
                c.STATUS: F.lit(str(RowStatus.PENDING)),
                c.REPLAY_ID: F.lit(replay_id),
                c.BATCH: F.lit(None).cast("bigint"),
            }
            rows = self._rows(judged, transaction).withColumns(pending)
            self._as_table(rows, transaction).mode("append").save(str(self.path))

    def replace(
        self, judged: DataFrame, transaction: BatchTransaction, files: Sequence[UnreadableFile] = ()
    ) -> None:
        """Replace what a killed driver left of a batch by the batch's rows and files, in one commit.

        The rules, or the rows of a query that is not repeatable, may have changed; the table does not have the batch yet.
        """
        batch = f"{c.FLOW} = {literal(self.flow)} AND {c.EPOCH} = {self.epoch} AND {c.BATCH} = {transaction.batch_id}"
        with _WRITING[self.path]:
            writer = self._writer(judged, transaction, files).mode("overwrite")
            writer.option("replaceWhere", batch).save(str(self.path))

    def replace_all(self, judged: DataFrame, transaction: BatchTransaction) -> None:
        """Replace all rows, when a materialized view is recomputed."""
        with _WRITING[self.path]:
            self._writer(judged, transaction).mode("overwrite").save(str(self.path))

    def _writer(
        self, judged: DataFrame, transaction: BatchTransaction, files: Sequence[UnreadableFile] = ()
    ) -> DataFrameWriter:
        rows = self._rows(judged, transaction)
        if files:
            of_files = self._files(judged.sparkSession, files, transaction)
            rows = rows.unionByName(of_files, allowMissingColumns=True)
        return self._as_table(rows, transaction)

    def _rows(self, judged: DataFrame, transaction: BatchTransaction) -> DataFrame:
        broken = judged.where(any_broken(self.rules, ViolationAction.QUARANTINE))
        columns = [*self._data_columns(judged), *self._managed_columns(judged, transaction)]
        return broken.select(F.array_join(broken_names(self.rules), ", ").alias(c.REASON), *columns)

    def _as_table(self, rows: DataFrame, transaction: BatchTransaction) -> DataFrameWriter:
        writer = rows.write.format("delta")
        return writer.option("mergeSchema", "true").option("userMetadata", transaction.user_metadata)

    def _files(
        self, session: SparkSession, files: Sequence[UnreadableFile], transaction: BatchTransaction
    ) -> DataFrame:
        """A row for each file: its URI, and its details in place of the row."""
        names = [(file.uri, json.dumps(file.details)) for file in files]
        rows = session.createDataFrame(names, f"{c.FILE} STRING, {c.ROW} STRING")
        return rows.select(
            F.lit(c.UNREADABLE_FILE).alias(c.REASON),
            F.array(F.lit(c.UNREADABLE_FILE)).alias(c.RULES),
            *[value.alias(name) for name, value in self._written_by(transaction).items()],
            c.FILE,
            c.ROW,
            F.current_timestamp().alias(c.QUARANTINED_AT),
            F.lit(str(RowStatus.HELD)).alias(c.STATUS),
        )

    def _written_by(self, transaction: BatchTransaction) -> dict[str, Column]:
        ends = json.loads(transaction.user_metadata).get("end_offsets")
        return {
            c.ID: F.uuid(),
            c.FLOW: F.lit(self.flow),
            c.EPOCH: F.lit(self.epoch),
            c.BATCH: F.lit(transaction.batch_id).cast("bigint"),
            c.UPDATE_ID: F.lit(self.update_id),
            c.SOURCE_OFFSETS: F.lit(None if ends is None else json.dumps(ends)).cast("string"),
        }

    def _data_columns(self, judged: DataFrame) -> list[Column]:
        """The row's columns that fit the table as it is; what does not fit is only in the JSON."""
        stored = _column_types(self.path)
        rows = StructType([judged.schema[name] for name in own_columns(judged)])
        return [
            F.col(quoted(field.name))
            for field in own_fields(rows)
            if stored.get(field.name.lower(), field.dataType) == field.dataType
        ]

    def _managed_columns(self, judged: DataFrame, transaction: BatchTransaction) -> list[Column]:
        values = {
            c.RULES: broken_names(self.rules),
            **self._written_by(transaction),
            **_origin(judged),
            c.ROW: _row_text(judged),
            c.QUARANTINED_AT: F.current_timestamp(),
            c.STATUS: F.lit(str(RowStatus.HELD)),
            c.STATUS_AT: F.lit(None).cast("timestamp"),
            c.STATUS_REASON: F.lit(None).cast("string"),
            c.REPLAY_ID: F.lit(None).cast("string"),
        }
        return [value.alias(name) for name, value in values.items()]


def _row_text(judged: DataFrame) -> Column:
    if ROW_TEXT in judged.columns:
        return F.col(ROW_TEXT)
    return F.to_json(F.struct(*[F.col(quoted(name)) for name in own_columns(judged)]), JSON_OPTIONS)


def _origin(judged: DataFrame) -> dict[str, Column]:
    kinds = {c.TOPIC: "string", c.PARTITION: "int", c.OFFSET: "bigint", c.FILE: "string"}
    if SOURCE not in judged.columns:
        kinds |= {c.SOURCE_RECORD: "string", c.SOURCE_VALUE: "binary"}
        return {name: F.lit(None).cast(kind) for name, kind in kinds.items()}
    source = judged.schema[SOURCE].dataType
    assert isinstance(source, StructType)
    record, value = F.col(f"{SOURCE}.record"), F.lit(None).cast("binary")
    as_json = isinstance(source["record"].dataType, StringType)
    if has_bytes(judged.schema):
        value = F.col(f"{SOURCE}.value" if as_json else f"{SOURCE}.record.value")
    return {
        **{name: F.col(f"{SOURCE}.{name[1:]}") for name in kinds},
        c.SOURCE_RECORD: record if as_json else F.to_json(record, JSON_OPTIONS),
        c.SOURCE_VALUE: value,
    }


def _column_types(path: Place) -> dict[str, DataType]:
    if not table_exists(path):
        return {}

    return {name: field.dataType for name, field in columns_of(delta_table(path)).items()}
