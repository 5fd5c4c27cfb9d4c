"""What makes unit tests quick: none starts a JVM (what needs Spark is in tests/integration), and none waits for a disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from pyspark import SparkContext
from tests.object_stores import StoreServer, started_server

from headwater.runtime import secret_values

_PROGRAMS = {"java", "keytool", "spark-submit", "spark-class", "pyspark"}
_STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn"}
_running: list[str] = []
_END = "-----END CERTIFICATE-----"


def _refuse(what: str) -> None:
    # Not an Exception: nothing that is tested may take it for one of its own failures.
    pytest.fail(
        f"{_running[-1]} starts a JVM ({what}). Test the decision on plain values, or move the test to tests/integration."
    )


def _on_audit(event: str, details: tuple[Any, ...]) -> None:
    if event not in _STARTS or not _running or Path(str(details[0])).name not in _PROGRAMS:
        return
    # How old a Java is, it has to say itself; that takes a moment, and runs nothing.
    if details[1][-1] != "-version":
        _refuse(str(details[0]))


def _no_context(*_: Any, **__: Any) -> None:
    _refuse("a SparkContext")


@pytest.fixture(scope="session", autouse=True)
def _one_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients of stores read all certificates of the machine whenever one is made, which takes longer than a test's requests."""
    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(_END)
    file = tmp_path_factory.mktemp("roots") / "one.pem"
    file.write_text(f"{first}{end}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        patch.delenv("SSL_CERT_DIR", raising=False)
        yield


@pytest.fixture(scope="session")
def light_store() -> Iterator[StoreServer]:
    """One light S3 server for all modules; ``leading_to`` leads to it. Each test has keys of its own."""
    with started_server(light=True) as server:
        yield server


@pytest.fixture(scope="session")
def moto_store() -> Iterator[StoreServer]:
    """As ``light_store``, an S3 server that others have written."""
    with started_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_secret_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test notes as a secret is none to the next one, whose texts may have the same word."""
    monkeypatch.setattr(secret_values, "_noted", set(secret_values._noted))


@pytest.fixture(autouse=True)
def _no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of this folder takes the power away, and a disk that others use makes each of hundreds of waits a long one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch each test of this folder, its fixtures included."""
    _running.append(item.nodeid)
    original = SparkContext.__dict__["_ensure_initialized"]
    SparkContext._ensure_initialized = _no_context
    try:
        return (yield)
    finally:
        SparkContext._ensure_initialized = original
        _running.pop()


# It can't be taken away again: outside of these tests it does nothing.
sys.addaudithook(_on_audit)
