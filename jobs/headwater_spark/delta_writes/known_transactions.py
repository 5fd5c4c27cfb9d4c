"""Writes of batches that look in a table's checksum file for what the table has, by a class of our own jar.

Delta itself computes the whole state of the table for that, in three Spark jobs for each batch. Decision 0207.
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headwater.runtime.own_classes import KNOWN_TRANSACTIONS, TABLE_SINK
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_internals import DELTA, is_another_version, warn_of_another_version
from headwater_spark.java_classes import java_class


def stream_format(session: SparkSession) -> str:
    """The format by which a stream is written to a Delta table; Delta's own where the session was started without our jar."""
    return TABLE_SINK if isinstance(java_class(session._jvm, TABLE_SINK), JavaClass) else "delta"  # noqa: SLF001


def transaction_options(session: SparkSession, table: Place, transaction: BatchTransaction) -> dict[str, str]:
    """Options with which a writer commits a batch to a table once.

    For the commit that comes next, Delta is given what the table's checksum file says of its transactions. It computes them
    where the table has no such file, where another writer has changed it since this process saw it last, or where the session
    was started without our jar or with another Delta.
    """
    _give_known(session, table)
    return transaction.options


def _give_known(session: SparkSession, table: Place) -> None:
    jvm = session._jvm  # noqa: SLF001 - Delta has no public API for it
    known = java_class(jvm, KNOWN_TRANSACTIONS)
    if not isinstance(known, JavaClass):
        return
    try:
        log = java_class(jvm, f"{DELTA}.DeltaLog").forTable(session._jsparkSession, str(table))  # noqa: SLF001
        known.give(log.unsafeVolatileSnapshot())
    except (Py4JError, TypeError) as error:
        if not is_another_version(error):
            raise
        warn_of_another_version(jvm, "knowing a table's transactions", error)
