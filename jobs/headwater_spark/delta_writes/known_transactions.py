"""Writes of batches that look in a table's checksum file for what the table has, by a class of our own jar.

Delta itself computes the whole state of the table for that, in three Spark jobs for each batch. Decision 0207.
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from headwater.runtime.own_classes import TABLE_SINK
from headwater_spark.java_classes import java_class


def stream_format(session: SparkSession) -> str:
    """The format by which a stream is written to a Delta table; Delta's own where the session was started without our jar."""
    return TABLE_SINK if isinstance(java_class(session._jvm, TABLE_SINK), JavaClass) else "delta"  # noqa: SLF001
