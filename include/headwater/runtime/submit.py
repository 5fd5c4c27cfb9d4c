"""Settings of Spark that must be known before the JVM starts: the same for ``spark-submit`` and for a plain driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from headwater.runtime.jars import ensure_jars

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# The first JIT compiler alone: small jobs spend their time starting. Its code cache would fill after some forty
# queries at its default size, and then compiling stops.
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -Xshare:auto"


def submit_conf(user_conf: Mapping[str, str], *, local: bool = True) -> dict[str, str]:
    """What to pass as ``--conf`` (or to a session's builder) for an update.

    Args:
        user_conf: the ``spark`` section of ``pipeline.yml``; it wins over every default.
        local: whether the master is ``local[...]``: then jars go on the class path as they lie, servers bind to
            loopback and the JVM is tuned for small data.

    """
    jars = ensure_jars("spark")
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|credential",
    }
    if local:
        class_path = os.pathsep.join(str(jar) for jar in jars)
        cores = os.cpu_count() or 2
        conf |= {
            "spark.driver.extraClassPath": class_path,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"{conf['spark.driver.extraJavaOptions']} {_QUICK_JVM}",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": str(max(2, min(cores, 8))),
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    java_options = "spark.driver.extraJavaOptions"
    merged = {**conf, **user_conf}
    if java_options in user_conf:
        merged[java_options] = (
            f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} {user_conf[java_options]}"
        )
    return merged
