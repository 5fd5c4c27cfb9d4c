"""Java starts beside the imports of a driver, once, and what goes wrong there is left to the start of the session."""

from __future__ import annotations

import logging
import signal
import threading

import pytest
from py4j import java_gateway
from pyspark import SparkContext

from headwater_spark import session


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings that Java was started with; no Java runs, and none is started."""
    taken: list[dict[str, str]] = []
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "_settings", lambda name, conf: {**conf, "spark.app.name": name})
    monkeypatch.setattr(session, "_start_java", taken.append)
    return taken


def test_java_starts_beside_the_block(starts: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The block runs while Java is being started, with the settings of the session that waits for it."""
    block_ran, started = threading.Event(), threading.Event()

    def start(settings: dict[str, str]) -> None:
        # Were the block to wait for Java, this would wait for the block in vain.
        assert block_ran.wait(10)
        starts.append(settings)
        started.set()

    monkeypatch.setattr(session, "_start_java", start)
    with session.java_meanwhile("orders", {"spark.master": "local[2]"}):
        block_ran.set()
    assert started.wait(10)
    assert starts == [{"spark.master": "local[2]", "spark.app.name": "orders"}]


@pytest.mark.parametrize("running", ["submitted", "gateway"])
def test_a_java_that_runs_is_kept(
    starts: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, running: str
) -> None:
    """Where spark-submit has started Java, or this process has, none is started."""
    if running == "submitted":
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    else:
        monkeypatch.setattr(SparkContext, "_gateway", object())
    with session.java_meanwhile("orders", {}):
        pass
    assert starts == []


def test_a_failure_is_left_to_the_session(
    starts: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that can't be started ends no import: the session starts it again, and raises."""

    def fail(settings: dict[str, str]) -> None:
        starts.append(settings)
        raise OSError("no Java")

    monkeypatch.setattr(session, "_start_java", fail)
    with session.java_meanwhile("orders", {}):
        pass
    with pytest.raises(OSError, match="no Java"):
        session.start_session("orders", {})
    assert len(starts) == 2


def test_an_interrupt_ends_the_start_with_one_line() -> None:
    """PySpark's own handler of Ctrl-C is gone when the session stands, and what py4j logs of a broken call is left out; the rest stays."""
    before = signal.getsignal(signal.SIGINT)
    with session._interrupts_of_before():
        signal.signal(signal.SIGINT, lambda *_: None)
    assert signal.getsignal(signal.SIGINT) is before
    message = ("%s while sending command.", ("KeyboardInterrupt",), None)
    of_py4j, of_others = (
        logging.LogRecord("root", logging.ERROR, file, 1, *message)
        for file in (java_gateway.__file__, __file__)
    )
    assert [session._is_no_call_broken_off(record) for record in (of_py4j, of_others)] == [False, True]
