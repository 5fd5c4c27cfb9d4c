"""A real metastore service for tests: Hive's own, from Spark's jars, on loopback, with its database in memory or in Postgres."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

from headwater.runtime.java import java_environment
from headwater.runtime.ports import free_port

_STARTS_WITHIN = 90.0


@contextmanager
def hive_metastore(
    folder: Path, settings: Mapping[str, str] | None = None, class_path: str = ""
) -> Iterator[int]:
    """A running service until the end of the block; its port.

    Args:
        folder: for its configuration and log.
        settings: over those of Derby.
        class_path: further jars.
    """
    conf, port = folder / "conf", free_port()
    conf.mkdir(parents=True)
    (conf / "hive-site.xml").write_text(_site({**_defaults(folder), **(settings or {})}))
    jars = Path(pyspark.__file__).parent / "jars"
    environment = {**os.environ, **java_environment()}
    command = [
        f"{environment['JAVA_HOME']}/bin/java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector",
        f"-Dderby.stream.error.file={folder / 'derby.log'}",
        "-cp", ":".join(filter(None, (str(conf), f"{jars}/*", class_path))),
        "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port),
    ]  # fmt: skip
    with (folder / "out.log").open("wb") as log:
        service = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        _wait(service, port, folder / "out.log")
        yield port
    finally:
        service.kill()
        service.wait()


def _defaults(folder: Path) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",
    }


def _site(settings: Mapping[str, str]) -> str:
    rows = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{''.join(rows)}</configuration>"


def _wait(service: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if service.poll() is not None or time.monotonic() > ends:
                raise AssertionError(f"the metastore did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.2)
        else:
            return
