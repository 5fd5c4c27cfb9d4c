"""The sessions of the hand-written programs."""

import os

from pyspark.sql import SparkSession

from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.submit import submit_conf


def session(settings=None):
    """A session on all cores, with the same settings as an update of Headwater; ``settings``: those of a long one."""
    os.environ.update(java_environment())
    builder = SparkSession.builder.master("local[*]").appName("by hand")
    for key, value in submit_conf(settings or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def documented():
    """A session as Delta's quick start has it; its jars are at hand, where ``spark.jars.packages`` would look them up."""
    os.environ.update(java_environment())
    return (
        SparkSession.builder.master("local[*]").appName("by hand")
        .config("spark.jars", ",".join(map(str, ensure_jars("spark"))))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .getOrCreate()
    )  # fmt: skip
