"""The target of a batch as the batch finds it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.local_rows import rows_about


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

    def about(self, batch: ChangeBatch) -> DataFrame:
        """The rows that may be about the batch's keys; of other keys, too."""
        found = None
        if batch.local is not None and batch.cleared_at is None:
            spark, schema = self.rows.sparkSession, self.rows.schema
            found = rows_about(spark, self.path, batch.columns.keys, batch.local, schema=schema)
        return self.rows if found is None else found

    def read_ahead(self) -> None:
        """Let Delta read the table's log while the batch is looked at: the merge needs it, and would wait for it."""
        pool = ThreadPoolExecutor(1, "headwater-read-ahead")
        # Asking for the number of files makes Delta compute its state. What fails here fails in the merge, and is told there.
        pool.submit(self.table.detail)
        pool.shutdown(wait=False)
