"""Checks of a session whose storage or warehouse lies in an object store.

Its settings come from ``headwater.runtime.object_store``, because Airflow needs them too; here is what only a running Spark knows.

Decision 0186, decision 0212.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from headwater.runtime.object_store import refuse_unsafe
from headwater.storage.azure import AUTH_TYPE, hadoop_login

_S3A = "fs.s3a."


def refuse_unsafe_session(spark: SparkSession) -> None:
    """Raise UnsafeStoreSetting where Hadoop, whatever file it was configured by, would let two writers overwrite each other."""
    context: Any = spark._jsc  # noqa: SLF001 - Hadoop's settings have no public face in Python
    by_suffix = context.hadoopConfiguration().getPropsWithPrefix(_S3A)
    settings = {f"{_S3A}{suffix}": str(value) for suffix, value in by_suffix.items()}
    refuse_unsafe(settings, "Hadoop's configuration (core-site.xml, spark-defaults.conf)")


def use_azure_login(spark: SparkSession, environment: Mapping[str, str] = os.environ) -> None:
    """Give Hadoop's client of Azure the login of this process's environment, unless the pipeline has settings for one.

    As Spark does with AWS's variables: it is in the memory of the driver and its executors, and in no argument.
    """
    hadoop: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    if hadoop.getPropsWithPrefix(AUTH_TYPE).isEmpty():
        for name, value in hadoop_login(environment).items():
            hadoop.set(name, value)
