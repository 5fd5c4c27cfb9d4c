"""Delta's column mapping: a table with it takes columns of any name, and what Delta's files could not name."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

MAPPING = "delta.columnMapping.mode"
BY_NAME = {MAPPING: "name"}


def map_columns(spark: SparkSession, path: Place) -> bool:
    """Turn column mapping on for an existing table, in a commit of its own; returns whether it was off.

    Files that are there keep their columns' names, so that readers of the table go on.
    """
    if delta_table(path).metadata().configuration.get(MAPPING, "none") != "none":
        return False
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{MAPPING}' = 'name')")
    return True
