"""The target of a batch, as it is before the batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows, find_rows
from headwater_spark.auto_cdc.on_driver.rows import local_frame


@dataclass(frozen=True)
class TargetRows:
    """Rows of a target. ``matches``: the same rows by file, if they are on the driver; else the reason why not."""

    table: DataFrame
    matches: MatchingRows | str

    @property
    def frame(self) -> DataFrame:
        """The rows for Spark."""
        if isinstance(self.matches, str):
            return self.table
        return local_frame(self.table.sparkSession, self.matches.rows, self.table.schema)


@dataclass(frozen=True)
class OpenTarget:
    """A target opened for one batch. ``table`` is merged into, ``rows`` are read."""

    path: Place
    table: DeltaTable
    rows: DataFrame

    @classmethod
    def at(cls, spark: SparkSession, path: Place) -> OpenTarget:
        """The current version of the target."""
        table = DeltaTable.forPath(spark, str(path))
        return cls(path, table, table.toDF())

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return self.rows.columns

    def rows_about(self, batch: ChangeBatch) -> TargetRows:
        """The rows that may be about the batch's keys; rows of other keys may be among them."""
        if batch.local is None or batch.cleared_at is not None:
            return TargetRows(self.rows, batch.not_local or "the batch truncates")
        return TargetRows(self.rows, find_rows(self.path, batch.columns.keys, batch.local, self.rows.schema))

    def read_ahead(self) -> None:
        """Let Delta read the table's log while the batch is read: the merge needs it, and would wait for it."""
        pool = ThreadPoolExecutor(1, "headwater-read-ahead")
        # `detail` makes Delta compute the table's state. An error here occurs in the merge again, and is raised there.
        pool.submit(self.table.detail)
        pool.shutdown(wait=False)
