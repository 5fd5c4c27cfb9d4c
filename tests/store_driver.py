"""A driver with what S3 needs, for all modules of a process that want one: what they do there runs one after the other.

A session of the other tests was started without what S3 needs, and a JVM of its own for each module would spend most of its time on
classes that it had not used before. Each module begins without a Spark context, so that its settings are its own, and writes to a
bucket that no other module uses: what was read of a store is known by its address. What starts, stops or ends a driver has a
process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.object_stores import CREDENTIALS

from headwater.runtime.java import java_environment

CHECKOUT = Path(__file__).resolve().parents[1]
_OF_A_SERVER = ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")
# A heap that grows from a small one is collected three times as often, and each time takes as long.
_ROOMY = "-Xms1g -Xmn400m -XX:MetaspaceSize=300m"


class StoreDriver:
    """The process, which is started when it is wanted. ``log``: all that it says."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process: subprocess.Popen[str] | None = None
        self._began = 0

    @property
    def said(self) -> str:
        """What it has said since the last function began."""
        return self.log.read_bytes()[self._began :].decode(errors="replace")

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        server: Mapping[str, str] | None = None,
        goes_on: bool = False,
    ) -> Any:
        """Run a function of a module there.

        Args:
            function: by whose names it is looked up there; it takes and returns what JSON has.
            arguments: for it.
            server: what the environment says of the server; nothing where it is not given.
            goes_on: the session of the function before is this one's, too.

        Raises:
            AssertionError: it has failed; the message has its traceback, and what the process has said.

        """
        if self._process is None:
            self._process = self._start()
        self._began = self.log.stat().st_size
        order = {
            "module": function.__module__, "name": function.__name__, "arguments": arguments,
            "environment": {name: (server or {}).get(name) for name in _OF_A_SERVER}, "goes_on": goes_on,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            assert line, self.said[-8000:]
        except BaseException:  # it is in the middle of something
            self.end()
            raise
        answer = json.loads(line)
        assert "returned" in answer, f"{self.said[-4000:]}\n{answer.get('error')}"
        return answer["returned"]

    def end(self) -> None:
        """End it; another one is started when it is wanted."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name not in _OF_A_SERVER}
        floors = os.pathsep.join(["include", "jobs", "plugins", "."])
        with self.log.open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.store_driver"],
                cwd=CHECKOUT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={
                    **environment, **CREDENTIALS, **java_environment(), "PYTHONPATH": floors,
                    "SPARK_SUBMIT_OPTS": _ROOMY,
                },
            )  # fmt: skip


@pytest.fixture(scope="session")
def store_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreDriver]:
    """The driver of this process."""
    log = tmp_path_factory.mktemp("store_driver") / "log"
    log.touch()
    driver = StoreDriver(log)
    yield driver
    driver.end()


def _serve() -> None:
    """The driver's process: a line of JSON for each function, answered by a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a function prints is for the log
    for line in sys.stdin:
        order = json.loads(line)
        for name, value in order["environment"].items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        try:
            if not order["goes_on"]:
                _begin_anew()
            function = getattr(importlib.import_module(order["module"]), order["name"])
            answer = {"returned": function(*order["arguments"])}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def _begin_anew() -> None:
    """End the session, and forget clients of other servers, and their tables."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from headwater_spark.java_classes import java_class
    from headwater_spark.session import end_session
    from headwater_spark.testing.local_session import forget_tables

    if SparkContext._active_spark_context is None:
        return
    session = SparkSession.builder.getOrCreate()
    jvm = session._jvm
    forget_tables(session)
    end_session()
    with suppress(Exception):  # what was open is of a server that is gone
        java_class(jvm, "org.apache.hadoop.fs.FileSystem").closeAll()


if __name__ == "__main__":
    _serve()
