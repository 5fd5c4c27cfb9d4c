"""Checks of a session whose storage or warehouse lies in an object store.

Its settings come from ``headwater.runtime.object_store``, because Airflow needs them too; here is what only a running Spark knows.

Decision 0186.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headwater.runtime.object_store import refuse_unsafe

_S3A = "fs.s3a."


def refuse_unsafe_session(spark: SparkSession) -> None:
    """Raise UnsafeStoreSetting where Hadoop, whatever file it was configured by, would let two writers overwrite each other."""
    context: Any = spark._jsc  # noqa: SLF001 - Hadoop's settings have no public face in Python
    by_suffix = context.hadoopConfiguration().getPropsWithPrefix(_S3A)
    settings = {f"{_S3A}{suffix}": str(value) for suffix, value in by_suffix.items()}
    refuse_unsafe(settings, "Hadoop's configuration (core-site.xml, spark-defaults.conf)")
