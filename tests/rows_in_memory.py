"""The rows of a Delta table as Spark has them in memory, read by delta-rs: Spark's own way takes several jobs for each table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession

_MAPPED = "delta.columnMapping.mode"


def rows_in_memory(spark: SparkSession, table: Path) -> DataFrame:
    """The rows as they are now, whatever becomes of the table's files."""
    source = DeltaTable(str(table))
    if source.metadata().configuration.get(_MAPPED, "none") != "none":  # delta-rs refuses it
        return spark.createDataFrame(spark.read.format("delta").load(str(table)).toArrow())
    schema = pa.schema(source.schema().to_arrow())
    columns = ", ".join(f'"{name}"' for name in schema.names)
    rows = pa.table(QueryBuilder().register("t", source).execute(f"select {columns} from t").read_all())
    return spark.createDataFrame(rows.cast(schema))
