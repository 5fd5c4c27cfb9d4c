from __future__ import annotations

from pyspark.sql import SparkSession

from headwater_spark.java_classes import java_class
from headwater_spark.session import start_session

# A test has a handful of rows: more partitions are more tasks, and nothing else.
_SMALL = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


def local_session() -> SparkSession:
    """The process's Spark session, small and quick; started on the first call.

    It has the settings of an update (Delta, UTC), so a function behaves in a test as it does in a pipeline.
    """
    return SparkSession.getActiveSession() or start_session("headwater-tests", _SMALL)


def forget_tables(spark: SparkSession) -> None:
    """Clear Delta's cache of table snapshots: it keeps each table for an hour, and with it the session that read it.

    For a process that runs many small updates on tables of their own; a table that is used again is read again.
    """
    jvm = spark._jvm  # noqa: SLF001 - Delta offers this in Scala only
    java_class(jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
