"""Writers in JVMs of their own that write the same names of a store at once, by the classes that commits and checkpoints go through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from headwater.runtime.submit import submit_conf

# What Delta expects of a version that is there, and Spark of a batch.
REFUSALS = {
    "commit": "java.nio.file.FileAlreadyExistsException",
    "record": "org.apache.hadoop.fs.FileAlreadyExistsException",
}


@contextmanager
def java(settings: dict[str, str]) -> Iterator[Any]:
    """A JVM of its own with the class path of a driver, without a Spark context."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(submit_conf(settings).items()))
    gateway = launch_gateway(conf)
    try:
        yield gateway
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)


class Writer:
    """One JVM's log store and checkpoint manager, made by name as Delta and Spark make them."""

    def __init__(
        self, gateway: Any, settings: dict[str, str], root: str, login: dict[str, str] | None = None
    ) -> None:
        self.root = root
        self.jvm = gateway.jvm
        self.conf = self.jvm.org.apache.hadoop.conf.Configuration()
        for name, value in settings.items():
            if name.startswith("spark.hadoop."):
                self.conf.set(name.removeprefix("spark.hadoop."), value)
        for name, value in (login or {}).items():
            self.conf.set(name, value)
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        log_store = settings[f"spark.delta.logStore.{root.partition(':')[0]}.impl"]
        self.logs = self._made(gateway, loader, log_store, self.conf)
        folder = self.path("record")
        name = settings["spark.sql.streaming.checkpointFileManagerClass"]
        self.checkpoints = self._made(gateway, loader, name, folder, self.conf)

    def _made(self, gateway: Any, loader: Any, name: str, *arguments: Any) -> Any:
        values = gateway.new_array(self.jvm.java.lang.Object, len(arguments))
        for index, argument in enumerate(arguments):
            values[index] = argument
        java_class = self.jvm.java.lang.Class.forName(name, True, loader)
        return java_class.getConstructors()[0].newInstance(values)

    def path(self, key: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.root}/{key}")

    def commit(self, key: str, text: str) -> None:
        """One version of a Delta table."""
        lines = self.jvm.java.util.ArrayList()
        lines.add(text)
        self.logs.write(self.path(key), lines.iterator(), False, self.conf)

    def record(self, key: str, text: str) -> None:
        """One batch of a checkpoint."""
        stream = self.checkpoints.createAtomic(self.path(key), False)
        stream.write(bytearray(text.encode()))
        stream.close()

    def read(self, key: str) -> str:
        """What is stored."""
        return str(self.logs.read(self.path(key), self.conf).next())


def at_once(actions: Sequence[Callable[[], None]]) -> list[str]:
    """Run all in the same moment; how each ended: empty, or the name of what it threw."""
    together = threading.Barrier(len(actions))
    ends = [""] * len(actions)

    def run(index: int) -> None:
        together.wait()
        try:
            actions[index]()
        except Py4JJavaError as error:
            ends[index] = error.java_exception.getClass().getName()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends
