"""The target of a batch as the batch finds it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.on_driver.look_up import FoundRows, find_rows
from headwater_spark.auto_cdc.on_driver.rows import local_frame


@dataclass(frozen=True)
class AboutKeys:
    """Rows of a target. ``found``: the same as they lie in their files, where they are on the driver; else why not."""

    table: DataFrame
    found: FoundRows | str

    @property
    def frame(self) -> DataFrame:
        """The rows for Spark."""
        if isinstance(self.found, str):
            return self.table
        return local_frame(self.table.sparkSession, self.found.rows, self.table.schema)


@dataclass(frozen=True)
class OpenTarget:
    """A target opened for one batch. ``table`` is merged into, ``rows`` are read."""

    path: Path
    table: DeltaTable
    rows: DataFrame

    @classmethod
    def at(cls, spark: SparkSession, path: Path) -> OpenTarget:
        """The target as it stands now."""
        table = DeltaTable.forPath(spark, str(path))
        return cls(path, table, table.toDF())

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return self.rows.columns

    def about(self, batch: ChangeBatch) -> AboutKeys:
        """The rows that may be about the batch's keys; of other keys, too."""
        if batch.local is None or batch.cleared_at is not None:
            return AboutKeys(self.rows, batch.not_local or "the batch truncates")
        return AboutKeys(self.rows, find_rows(self.path, batch.columns.keys, batch.local, self.rows.schema))

    def read_ahead(self) -> None:
        """Let Delta read the table's log while the batch is looked at: the merge needs it, and would wait for it."""
        pool = ThreadPoolExecutor(1, "headwater-read-ahead")
        # Asking for the number of files makes Delta compute its state. What fails here fails in the merge, and is told there.
        pool.submit(self.table.detail)
        pool.shutdown(wait=False)
