"""Settings of Spark that must be known before the JVM starts: the same for ``spark-submit`` and for a plain driver.

Decision 0137, decision 0158.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headwater.runtime.class_sharing import shareable, sharing_options
from headwater.runtime.jars import ensure_jars
from headwater.runtime.masters import is_local
from headwater.runtime.object_store import needs_azure, needs_s3
from headwater.runtime.own_classes import LOCAL_FILES, own_jar
from headwater.runtime.secret_values import NAMES_OF_SECRETS, known_secrets, names_a_secret

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DEFAULT_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_REDACTION = "spark.redaction.regex"
_OF_TEXTS = "spark.redaction.string.regex"
# For the plans that Spark's UI and event log show. Java looks back a bounded number of characters only; the first look is
# cheap, and enough at nearly every place.
_VALUES = rf"(?i)(?<==)(?<={NAMES_OF_SECRETS}[\w.-]{{0,80}}=)[^\s,\])]+"
_IN_ADDRESS = re.compile(r"://[^\s/:@]*:[^\s/]+@")
_HEAP = "spark.driver.memory"
# A table that a join broadcasts takes a page at least, however few rows it has. By itself Spark makes pages of 16 to 64 MB in a heap
# of a gigabyte: two dozen queries side by side filled it. A task gets 8,192 pages at most.
_SMALL_PAGES = {"spark.buffer.pageSize": "2m"}
# What Spark keeps of jobs that are over, for its UI: the memory of a driver that runs for weeks must not grow with them.
LONG_RUNNING = {
    **_SMALL_PAGES,
    # Of Spark's usual gigabyte nine flows side by side hold three quarters after each collection: a third of the time went into it.
    _HEAP: "2g",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedQueries": "20",
    "spark.sql.streaming.ui.retainedProgressUpdates": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}
# Only the first JIT compiler: small jobs spend their time starting. Its code cache would fill after some forty
# queries at its default size, and then compiling stops.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"


def default_partitions(master: str) -> str:
    """How many partitions a shuffle has where the pipeline does not say: few on one machine, else Spark's own number."""
    return str(max(2, min(os.cpu_count() or 2, 8))) if is_local(master) else "200"


def submit_conf(user_conf: Mapping[str, str], *, local: bool = True) -> dict[str, str]:
    """What to pass as ``--conf`` (or to a session's builder) for an update.

    Args:
        user_conf: the settings of the pipeline's session (``PipelineProject.spark_conf``); they win over every default.
        local: whether the master is ``local[...]``: then jars go on the class path as they lie, servers bind to
            loopback and the JVM is tuned for small data.

    Raises:
        JarsUnavailable, JarChecksumMismatch: where the jars could not be had.
    """
    of_store = [
        *(ensure_jars("s3") if needs_s3(user_conf) else ()),
        *(ensure_jars("abfss") if needs_azure(user_conf) else ()),
    ]
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        _OF_TEXTS: _VALUES,
        # Delta's default of 50 would be fifty tasks for each look at a table, on a cluster as on one machine.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    if local:
        conf |= {
            "spark.driver.extraClassPath": driver_class_path(of_store),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": default_partitions("local"),
            # Whoever has given the driver more may need more than 16 GB for a task.
            **({} if _HEAP in user_conf else _SMALL_PAGES),
            **LOCAL_FILES,
        }
    else:
        conf["spark.jars"] = ",".join(map(str, [*ensure_jars("spark"), own_jar(), *of_store]))
    merged = {**conf, **user_conf, **redaction(user_conf)}
    merged[_JAVA_OPTIONS] = _java_options(merged, local=local)
    return merged


def driver_class_path(of_store: Sequence[Path] = ()) -> str:
    """The class path of a driver on this machine: jars fetched once, our own, those of a store, and with shared classes Spark's."""
    jars = [*ensure_jars("spark"), own_jar(), *of_store]
    return shareable(os.pathsep.join(str(jar) for jar in jars))


def _java_options(conf: Mapping[str, str], *, local: bool) -> str:
    """The driver's: ours first, so that a pipeline's own win."""
    options = conf.get(_JAVA_OPTIONS, _QUICK_JVM if local else "")
    shared = ""
    if local:
        shared = sharing_options(
            conf["spark.driver.extraClassPath"], options, conf.get(_DEFAULT_JAVA_OPTIONS, "")
        )
    return " ".join(filter(None, [f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}", shared, options]))


def redaction(user_conf: Mapping[str, str]) -> dict[str, str]:
    """What Spark hides by the names of settings (in its UI, its event log, its plans): what we do, and what a pipeline adds."""
    ours = f"(?i){NAMES_OF_SECRETS}"
    theirs = user_conf.get(_REDACTION)
    return {_REDACTION: f"{ours}|(?:{theirs})" if theirs else ours}


def command_line_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that may stand on a command line, which every user of a machine can read.

    The others are left to the driver: it reads ``pipeline.yml`` itself, and sets them before its Spark context starts.
    What the JVM needs before that stays (``spark.driver.extraJavaOptions``): it ends up on Java's command line in any case.
    """
    secrets = known_secrets()
    return {name: value for name, value in conf.items() if not _is_secret(name, value, secrets)}


def _is_secret(name: str, value: str, secrets: tuple[str, ...]) -> bool:
    if name in (_REDACTION, _OF_TEXTS) or name.endswith(".extraJavaOptions"):
        return False
    if names_a_secret(name) or _IN_ADDRESS.search(value):
        return True
    return any(secret in value for secret in secrets)
