"""The session that Spark's own code asks for what belongs to none of its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headwater_spark.java_classes import java_class


@contextmanager
def made_active(session: SparkSession) -> Iterator[None]:
    """Make a session the thread's active one inside the block."""
    sessions = java_class(session._jvm, "org.apache.spark.sql.classic.SparkSession")  # noqa: SLF001 - no public face in Python
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
