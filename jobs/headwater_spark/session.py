"""The Spark session of an update: one per process.

Decision 0008, decision 0158.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headwater.runtime.java import java_environment
from headwater.runtime.masters import PYTHON, is_local
from headwater.runtime.object_store import needs_azure, needs_s3
from headwater.runtime.shared_classes import make_after_exit
from headwater.runtime.submit import command_line_conf, redaction, submit_conf
from headwater_spark.call_sites import note_lines_of_users_only
from headwater_spark.hadoop_origins import forget_origins
from headwater_spark.java_classes import keep_classes_of_pyspark
from headwater_spark.java_references import give_back_together
from headwater_spark.object_store import refuse_unsafe_session, use_azure_login

# Settings that a running session can still take, and that every update needs.
_RUNTIME_DEFAULTS = {
    # Without this a Python UDF over a Parquet or Delta read never ends in Spark 4.2.0.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # Nor one over rows in memory, which all batches of a foreachBatch are, where all columns are numbers: that setting is passed over there.
    "spark.sql.inMemoryColumnarStorage.enableVectorizedReader": "false",
    "spark.sql.session.timeZone": "UTC",
    # The old form of times, which is Spark's default, is read as nanoseconds by others: the year 9999 is 1816 then (decision 0262).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # Checkpoints are managed, so a source's schemaTrackingLocation can't lie inside one.
    "spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation": "true",
}


def start_session(name: str, user_conf: Mapping[str, str]) -> SparkSession:
    """Start Spark (or join the JVM that spark-submit started) with the pipeline's settings.

    Args:
        name: the application's name.
        user_conf: the pipeline's settings (``PipelineProject.spark_conf``); they win over Headwater's defaults.

    Raises:
        JavaNotFound: where no Java was found.
        JarsUnavailable, JarChecksumMismatch: where the jars could not be had.
        UnsafeStoreSetting: where the settings of this Spark would let two writers of a store overwrite each other.
    """
    _name_python(_master(user_conf), user_conf)
    # Spark's Python loggers print one long JSON line for each failed query; our errors say it shorter.
    # And py4j's say at length that Ctrl-C broke a call off.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j.clientserver"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_call_broken_off)
    builder = SparkSession.builder.appName(name)
    if not _submitted():
        settings = _settings(name, user_conf)
        _start_java(settings)
        for key, value in settings.items():
            builder = builder.config(key, value)
    for key, value in {**_RUNTIME_DEFAULTS, **user_conf, **redaction(user_conf)}.items():
        builder = builder.config(key, value)
    with _interrupts_of_before():
        session = builder.getOrCreate()
    keep_classes_of_pyspark(session._jvm)  # noqa: SLF001 - the connection has no public face in a session
    give_back_together(session.sparkContext._gateway)  # noqa: SLF001 - as above
    note_lines_of_users_only()
    forget_origins(session)
    if needs_s3(user_conf):
        refuse_unsafe_session(session)
    if needs_azure(user_conf):
        use_azure_login(session)
    class_path = session.conf.get("spark.driver.extraClassPath", "")
    if class_path and is_local(session.sparkContext.master or ""):
        make_after_exit(class_path)
    return session


def end_session() -> None:
    """End the process's Spark application; the next ``start_session`` begins another, in the same JVM."""
    SparkSession.builder.getOrCreate().stop()


def _is_no_call_broken_off(record: logging.LogRecord) -> bool:
    """py4j prints a call's traceback before it raises the same."""
    return not (record.module == "java_gateway" and record.getMessage().endswith("while sending command."))


@contextmanager
def _interrupts_of_before() -> Iterator[None]:
    """Undo PySpark's own way with Ctrl-C, which calls the JVM in the midst of another call."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def java_meanwhile(name: str, user_conf: Mapping[str, str]) -> Iterator[None]:
    """Start the JVM beside the block, which imports what comes after it; ``start_session`` with the same arguments waits for it.

    Whatever goes wrong is left to ``start_session``, which then starts it again and raises.

    Decision 0183.
    """
    if _submitted() or SparkContext._gateway is not None:  # noqa: SLF001 - whether one runs
        yield
        return
    _name_python(_master(user_conf), user_conf)
    starter = ThreadPoolExecutor(1, thread_name_prefix="java-start")
    starter.submit(lambda: _start_java(_settings(name, user_conf)))
    yield
    starter.shutdown(wait=False)


def _name_python(master: str, user_conf: Mapping[str, str]) -> None:
    """Workers run in this Python, unless somebody says otherwise, or they are on other machines."""
    workers = sys.executable if is_local(master) else user_conf.get(PYTHON, "python3")
    os.environ.setdefault("PYSPARK_PYTHON", workers)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _master(user_conf: Mapping[str, str]) -> str:
    """Where executors run: what spark-submit was given, else what the pipeline says."""
    if not _submitted():
        return user_conf.get("spark.master", "local[*]")
    SparkContext._ensure_initialized()  # noqa: SLF001 - no public way to reach the JVM that runs
    return SparkConf().get("spark.master", "local[*]") or "local[*]"


def _submitted() -> bool:
    """Whether spark-submit has started the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _settings(name: str, user_conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a driver that starts its JVM itself; what the JVM needs in the environment is put there."""
    master = _master(user_conf)
    os.environ.update(java_environment())
    if "SPARK_LOCAL_IP" not in os.environ and is_local(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {
        **submit_conf(user_conf, local=is_local(master)),
        "spark.app.name": name,
        "spark.master": master,
    }


def _start_java(settings: Mapping[str, str]) -> None:
    """Start the JVM, if none runs, without a secret among its arguments; pyspark would put every setting there.

    The context gets all of them afterwards, over the connection that Python has to the JVM.
    """
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(command_line_conf(settings).items()))
    SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - no public way to start it
