"""Writing the rows of a batch that a quarantine takes, whole, with what is known of where they came from."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.delta_log.table_history import has_transaction, table_exists
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import literal
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.plans.names import quoted
from headwater_spark.quarantine.unreadable_files import UnreadableFile
from headwater_spark.rules.expectations import any_broken
from headwater_spark.rules.judgement import broken_names, own_columns
from headwater_spark.rules.quarantine_schema import own_fields
from headwater_spark.rules.source_records import JSON_OPTIONS, SOURCE, has_bytes

# Several flows may fill one quarantine, side by side: its columns grow one batch at a time.
_WRITING: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine table at ``path`` as one flow writes to it."""

    path: Path
    flow: str
    epoch: int
    update_id: str

    def has(self, transaction: BatchTransaction) -> bool:
        """Whether the rows of a batch are there."""
        return has_transaction(self.path, transaction.application, transaction.batch_id)

    def hold(
        self,
        judged: DataFrame,
        rules: Sequence[Expectation],
        transaction: BatchTransaction,
        files: Sequence[UnreadableFile] = (),
    ) -> None:
        """Append the rows that break a quarantine rule, and files that can't be read, under the batch's transaction."""
        with _WRITING[self.path]:
            self._writer(judged, rules, transaction, files).mode("append").option(
                "txnAppId", transaction.application
            ).option("txnVersion", str(transaction.batch_id)).save(str(self.path))

    def hold_pending(
        self,
        judged: DataFrame,
        rules: Sequence[Expectation],
        transaction: BatchTransaction,
        replay_id: str,
    ) -> None:
        """Append rows of a file that is being replayed: they are held once the replay is done."""
        with _WRITING[self.path]:
            rows = self._rows(judged, rules, transaction)
            rows = rows.withColumns(
                {
                    c.STATUS: F.lit(str(RowStatus.PENDING)),
                    c.REPLAY_ID: F.lit(replay_id),
                    c.BATCH: F.lit(None).cast("bigint"),
                }
            )
            self._as_table(rows, transaction).mode("append").save(str(self.path))

    def replace(
        self,
        judged: DataFrame,
        rules: Sequence[Expectation],
        transaction: BatchTransaction,
        files: Sequence[UnreadableFile] = (),
    ) -> None:
        """Put the rows and files of a batch in the place of those that a killed driver left of it, in one commit.

        The rules, or the rows of a query that is not repeatable, may be others now; the table does not have the batch yet.
        """
        batch = f"{c.FLOW} = {literal(self.flow)} AND {c.EPOCH} = {self.epoch} AND {c.BATCH} = {transaction.batch_id}"
        with _WRITING[self.path]:
            writer = self._writer(judged, rules, transaction, files).mode("overwrite")
            writer.option("replaceWhere", batch).save(str(self.path))

    def replace_all(
        self, judged: DataFrame, rules: Sequence[Expectation], transaction: BatchTransaction
    ) -> None:
        """Put the rows in the place of all, as a materialized view is recomputed."""
        with _WRITING[self.path]:
            self._writer(judged, rules, transaction).mode("overwrite").save(str(self.path))

    def _writer(
        self,
        judged: DataFrame,
        rules: Sequence[Expectation],
        transaction: BatchTransaction,
        files: Sequence[UnreadableFile] = (),
    ) -> DataFrameWriter:
        rows = self._rows(judged, rules, transaction)
        if files:
            rows = rows.unionByName(
                self._files(judged.sparkSession, files, transaction), allowMissingColumns=True
            )
        return self._as_table(rows, transaction)

    def _rows(
        self, judged: DataFrame, rules: Sequence[Expectation], transaction: BatchTransaction
    ) -> DataFrame:
        broken = judged.where(any_broken(rules, ViolationAction.QUARANTINE))
        columns = [*self._own(judged), *self._managed(judged, rules, transaction)]
        return broken.select(F.array_join(broken_names(rules), ", ").alias(c.REASON), *columns)

    def _as_table(self, rows: DataFrame, transaction: BatchTransaction) -> DataFrameWriter:
        writer = rows.write.format("delta")
        return writer.option("mergeSchema", "true").option("userMetadata", transaction.user_metadata)

    def _files(
        self, session: SparkSession, files: Sequence[UnreadableFile], transaction: BatchTransaction
    ) -> DataFrame:
        """A row for each file: its place, and what is known of it in the place of the row."""
        names = [(file.uri, json.dumps(file.told)) for file in files]
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

    def _own(self, judged: DataFrame) -> list[Column]:
        """The row's columns that fit the table as it is; what does not fit is in the JSON alone."""
        held = _held_types(self.path)
        rows = StructType([judged.schema[name] for name in own_columns(judged)])
        return [
            F.col(f"`{field.name}`")
            for field in own_fields(rows)
            if held.get(field.name.lower(), field.dataType) == field.dataType
        ]

    def _managed(
        self, judged: DataFrame, rules: Sequence[Expectation], transaction: BatchTransaction
    ) -> list[Column]:
        row = F.to_json(F.struct(*[F.col(quoted(name)) for name in own_columns(judged)]), JSON_OPTIONS)
        values = {
            c.RULES: broken_names(rules),
            **self._written_by(transaction),
            **_origin(judged),
            c.ROW: row,
            c.QUARANTINED_AT: F.current_timestamp(),
            c.STATUS: F.lit(str(RowStatus.HELD)),
            c.STATUS_AT: F.lit(None).cast("timestamp"),
            c.STATUS_REASON: F.lit(None).cast("string"),
            c.REPLAY_ID: F.lit(None).cast("string"),
        }
        return [value.alias(name) for name, value in values.items()]


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


def _held_types(path: Path) -> dict[str, DataType]:
    if not table_exists(path):
        return {}
    from deltalake import DeltaTable

    stored = StructType.fromJson(json.loads(DeltaTable(str(path)).schema().to_json()))
    return {field.name.lower(): field.dataType for field in stored.fields}
