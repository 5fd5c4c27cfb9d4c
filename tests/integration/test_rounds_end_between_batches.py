"""With `processing_time` an update looks again and again, and ends in time: between batches, and when it is told to."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headwater.delta_log.table_history import table_exists
from headwater_spark.execution import rounds

SOURCE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.materialized_view
def total():
    return dp.read("bronze").select(F.count("*").alias("n"))
"""


HOURLY = """
@dp.table(spark_conf={"pipelines.trigger.interval": "1 hour"})
def hourly():
    return spark.readStream.schema("id INT").json(LANDING)
"""


def when_total_is(case: Any, count: int, then: Callable[[], object]) -> threading.Thread:
    """Do something as soon as the view shows so many rows, beside the update."""
    return when(lambda: table_exists(case.table("total")) and case.rows("total") == [(count,)], then)


def when(holds: Callable[[], bool], then: Callable[[], object]) -> threading.Thread:
    """Do something as soon as a condition holds, beside the update."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if holds():
                then()
                return
            time.sleep(0.25)  # whoever looks takes a part of the cores

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


STRICT = """
@dp.table
@dp.expect_or_fail("small", "id < 100")
def strict():
    return spark.readStream.schema("id INT").json(LANDING)

@dp.table
def of_strict():
    return dp.read_stream("strict")
"""


class Clock:
    """The time of the rounds, which may go on by itself."""

    ahead = 0.0

    def monotonic(self) -> float:
        """In place of the module's function."""
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What the rounds look at."""
    made = Clock()
    monkeypatch.setattr(rounds, "time", made)
    return made


def test_a_failed_flow_ends_its_own_rounds_only(pipeline, monkeypatch, clock):
    """A flow fails in a later round: its readers stop with it, the others take in what comes until the time is up, and no longer,
    but for one that looks once an hour; the update is FAILED and names the flow. Batches of earlier rounds are recorded, and are
    not counted again.
    """

    def count_again(*_: object) -> None:
        raise AssertionError("a batch of this update was taken for one of a dead driver")

    monkeypatch.setattr("headwater_spark.execution.recounting._recount", count_again)
    case = pipeline(SOURCE + HOURLY + STRICT)
    case.land([{"id": 0}])
    assert case.update().state == "COMPLETED"
    text = (case.folder / "pipeline.yml").read_text()
    case.write("pipeline.yml", text + "trigger: {processing_time: 1 second, run_for: 10 minutes}\n")
    case.land([{"id": 1}])

    def then_more() -> None:
        when_total_is(case, 2, lambda: case.land([{"id": 100}])).join(60)
        when_total_is(case, 3, lambda: case.land([{"id": 2}, {"id": 3}])).join(60)
        when_total_is(case, 5, lambda: setattr(clock, "ahead", 600.0)).join(60)

    thread = when(lambda: case.rows("of_strict") == [(0,), (1,)], then_more)
    report = case.update()
    thread.join(60)
    assert (report.state, report["strict"].status, report["of_strict"].status) == (
        "FAILED",
        "FAILED",
        "SKIPPED",
    )
    assert "'strict'" in str(report.error)
    assert (clock.ahead, report.result.seconds < 60) == (600.0, True)
    assert (report["bronze"].status, report["total"].status) == ("COMPLETED", "COMPLETED")
    assert (report["bronze"].batches, report["bronze"].input_rows) == (3, 4)
    assert case.rows("bronze") == [(0,), (1,), (2,), (3,), (100,)]
    assert case.rows("total") == [(5,)]
    assert (report["hourly"].status, case.rows("hourly")) == ("COMPLETED", [(0,), (1,)])
    assert case.rows("strict") == case.rows("of_strict") == [(0,), (1,)]
    ends = [
        r["details"]["flow_progress"]["status"]
        for r in case.events(flow="strict", event_type="flow_progress")
    ]
    assert ends.count("FAILED") == 1
    batches = [r["origin"]["batch_id"] for r in case.events(flow="bronze", level="METRICS")]
    assert batches == [0, 1, 2, 3]


def test_a_batch_in_flight_is_finished(pipeline):
    """Told to stop, or out of time, within a slow batch, an update ends when that is done, not when all is read."""
    slow = """
import time

@F.udf("int")
def slow(value):
    time.sleep(1)
    return value

@dp.table
def bronze():
    files = spark.readStream.schema("id INT").option("maxFilesPerTrigger", 1).json(LANDING)
    return files.select(slow("id").alias("id"))
"""
    case = pipeline(slow)
    for number in range(6):
        case.land([{"id": number}])
    offsets = case.checkpoint("bronze").epoch_folder(0) / "offsets" / "0"
    thread = when(offsets.exists, lambda: os.kill(os.getpid(), signal.SIGTERM))
    report = case.update()
    thread.join(60)
    assert report.state == "CANCELED"
    assert (offsets.parents[1] / "commits" / "0").exists()
    assert case.rows("bronze") == [(0,)]
    text = (case.folder / "pipeline.yml").read_text()
    case.write("pipeline.yml", text + "trigger: {processing_time: 1 second, run_for: 1 second}\n")
    report = case.update()
    assert report.state == "COMPLETED"
    done = 1 + report["bronze"].batches
    assert 2 <= done < 6
    assert case.rows("bronze") == [(number,) for number in range(done)]


# The third and the fourth file wait for a gate each, and those after them for one that opens when the update is over: however
# slowly the test looks and the signal gets through, not all files are read before it stops.
GATED = """
import os
import time

GATES = os.path.join(os.path.dirname(LANDING), "gates")

@F.udf("int")
def through_the_gates(value, gates):
    gate = os.path.join(gates, str(min(value, 4)))
    while os.path.exists(gate):
        time.sleep(0.05)
    return value

@dp.table
def bronze():
    files = spark.readStream.schema("id INT").option("maxFilesPerTrigger", 1).json(LANDING)
    return files.select(through_the_gates("id", F.lit(GATES)).alias("id"))

@dp.materialized_view
def total():
    return dp.read("bronze").select(F.count("*").alias("n"))
"""


def test_sigterm_ends_it(pipeline):
    """Told to stop in its first table, an update is canceled: no flow is skipped or failed, and the next goes on. Told to stop in a
    later round, it ends soon, and says so; the next update goes on, and the process's handlers are its own again.
    """
    case = pipeline(GATED)
    for number in range(6):
        case.land([{"id": number}])
    gates = [case.root / "gates" / name for name in ("2", "3", "4")]
    gates[0].parent.mkdir()
    for gate in gates:
        gate.touch()

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def first_batch_is_there() -> bool:
        return table_exists(case.table("bronze")) and case.version("bronze") >= 1

    over = threading.Event()

    def stop_and_open() -> None:
        stop()
        gates[0].unlink()
        over.wait(3)
        gates[1].unlink()
        over.wait(60)
        gates[2].unlink()

    before = signal.getsignal(signal.SIGTERM)
    thread = when(first_batch_is_there, stop_and_open)
    report = case.update()
    over.set()
    thread.join(60)
    assert report.state == "CANCELED"
    assert {outcome.status for outcome in report.result.outcomes} == {"STOPPED"}
    assert 1 <= len(case.rows("bronze", order="1")) <= 4

    plain = (case.folder / "pipeline.yml").read_text()
    case.write("pipeline.yml", plain + "trigger: {processing_time: 1 second, run_for: 10 minutes}\n")
    thread = when_total_is(case, 6, stop)
    report = case.update()
    thread.join(60)
    assert report.state == "CANCELED"
    assert report.result.seconds < 60
    assert signal.getsignal(signal.SIGTERM) is before
    case.write("pipeline.yml", plain)
    case.land([{"id": 6}])
    assert case.update().state == "COMPLETED"
    assert case.rows("bronze", order="1") == [(number,) for number in range(7)]
    assert case.rows("total", order="1") == [(7,)]
