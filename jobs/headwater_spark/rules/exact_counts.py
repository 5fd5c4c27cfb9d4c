"""Observations that count each part of a batch once, by classes of our own jar, and without a copy of each row.

Spark adds up what each attempt of a task says. A part of a batch is evaluated again where its output was lost with an executor, or is
needed by another job, and is then counted twice. Without our jar Spark's own observations are used.

Decision 0215.
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from headwater_spark.java_classes import java_class

_STRATEGY = "headwater.rules.CountingStrategy"
# A setting of the session: "false" leaves observations to Spark.
EXACT_COUNTS = "spark.headwater.exactCounts"


def use_exact_counts(session: SparkSession) -> None:
    """Plan observations that only count by our own step, in this session and those cloned from it, as a stream's is."""
    strategy = java_class(session._jvm, _STRATEGY)  # noqa: SLF001 - no public way to Java
    if isinstance(strategy, JavaClass):
        strategy.use(session._jsparkSession)  # noqa: SLF001
