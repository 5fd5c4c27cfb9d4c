"""Hadoop's settings without a note of where each comes from.

Spark sends all of Hadoop's settings along with each read, each write and each look at a table's log: some 1,100, nearly all of
them Hadoop's own defaults. With each goes the name of the file that it stands in, compressed by itself; that takes most of the
time of sending, and nothing reads it but texts for people who debug Hadoop.

Decision 0255.
"""

from __future__ import annotations

import logging

from py4j.java_gateway import get_method
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headwater_spark.java_classes import java_class

_CONFIGURATION = "org.apache.hadoop.conf.Configuration"
_ORIGINS = "updatingResource"
_LOG = logging.getLogger("headwater.session")


def forget_origins(session: SparkSession) -> None:
    """Let the settings that the session's queries get keep no note of their files; their values stay.

    A Hadoop that keeps the notes elsewhere goes on as it is: this only spares time.
    """
    try:
        declared = java_class(session._jvm, "java.lang.Class").forName(_CONFIGURATION)  # noqa: SLF001 - as in start_session
        field = declared.getDeclaredField(_ORIGINS)
        field.setAccessible(True)
        origins = field.get(session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001 - no public way to it
        if origins is not None:
            # Python's own `clear` of a Java map takes its entries out one by one: 5,600 calls, a third of a second.
            get_method(origins, "clear")()
    except Py4JError as error:
        _LOG.debug("The origins of Hadoop's settings are kept: %s", error)
