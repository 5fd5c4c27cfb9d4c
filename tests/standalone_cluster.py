"""A standalone Spark master with workers of one core each, from pip's pyspark, on free ports of loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.runtime.class_sharing import spark_home
from headwater.runtime.java import java_environment

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_START_SECONDS = 60


class StandaloneCluster:
    """A running master and its workers. ``master``: its URL as Spark spells it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start("master", _MASTER, "--port", "0")
        self.master = self._said("master", r"Starting Spark master at (spark://\S+)")

    def start_workers(self, *names: str) -> None:
        """Start workers of one core each and wait until the master knows them."""
        for name in names:
            work = self._folder / f"{name}-work"
            options = ("--port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(work), self.master)
            self._start(name, _WORKER, *options)
        for name in names:
            self._said(name, r"(Successfully registered with master)")

    def kill_worker(self, name: str) -> None:
        """End a worker, its executors and their Python at once, as a machine that loses its power."""
        os.killpg(self._processes[name].pid, signal.SIGKILL)
        self._processes.pop(name).wait(30)

    def end(self) -> None:
        """Leave nothing behind."""
        for name in reversed(list(self._processes)):
            self.kill_worker(name)

    def _start(self, name: str, java_class: str, *arguments: str) -> None:
        spark = spark_home()
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [
                    f"{spark}/bin/spark-class",
                    java_class,
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    *arguments,
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    **java_environment(),
                    "SPARK_HOME": str(spark),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
            )

    def _said(self, name: str, pattern: str) -> str:
        log, ends = self._folder / f"{name}.log", time.monotonic() + _START_SECONDS
        while (match := re.search(pattern, log.read_text(errors="replace"))) is None:
            assert self._processes[name].poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < ends, log.read_text(errors="replace")
            time.sleep(0.1)
        return match[1]


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[StandaloneCluster]:
    """Run a cluster inside the block, with workers named ``worker-0`` and so on; its logs lie in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = StandaloneCluster(folder)
    try:
        cluster.start_workers(*(f"worker-{number}" for number in range(workers)))
        yield cluster
    finally:
        cluster.end()
