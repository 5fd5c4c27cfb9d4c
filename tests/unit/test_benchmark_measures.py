"""What the benchmarks of latency, growth and memory measure with."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.frame.aged_stream import last_batch, renumber_checkpoint, repeat_last_commit
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.latencies import event_latencies, percentile
from tests.benchmarks.frame.process_memory import live_bytes
from tests.benchmarks.frame.runs import Run
from tests.benchmarks.frame.slopes import slope
from tests.benchmarks.frame.steady_events import SteadyEvents

from headwater.checkpoints.offsets import committed_batches, read_offsets

HISTOGRAM = """4711:
 num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:         29999        3145728  [B (java.base@17)
   2:             1        1048576  Total
Total         30000        4194304
"""


def test_figures_of_one_run_are_parts():
    """A contender with several figures has a part for each, compared as any other."""

    def contender(factor: float):
        return lambda number: {"p50": Run(factor, 1), "p99": Run(factor * 10, 1)}

    bench = Bench("x", seconds=0)
    bench.interleaved("chain", {"a": contender(1.0), "b": contender(2.0)}, least=2)
    assert {part: len(runs["a"]) for part, runs in bench.parts.items()} == {"chain, p50": 2, "chain, p99": 2}
    assert bench.compare("chain, p99", "a", "b").ratio == 0.5


def test_latency_is_from_sending_to_the_commit(tmp_path: Path):
    """Each event has the time from its own sending to the commit that brought it, not to a later one."""
    for number, (sent, committed) in enumerate([(100.0, 101.5), (103.0, 107.0)]):
        rows = pa.table({"id": [2 * number, 2 * number + 1], "sent": [sent, sent + 0.5]})
        write_deltalake(str(tmp_path), rows, mode="append")
        os.utime(tmp_path / "_delta_log" / f"{number:020}.json", (committed, committed))
    assert event_latencies(tmp_path) == {0: 1.5, 1: 1.0, 2: 4.0, 3: 3.5}


def test_an_event_that_came_twice_is_an_error(tmp_path: Path):
    """A table with a doubled event, or one whose rows were removed, is not measured."""
    for _ in range(2):
        write_deltalake(str(tmp_path / "doubled"), pa.table({"id": [1], "sent": [1.0]}), mode="append")
        write_deltalake(str(tmp_path / "replaced"), pa.table({"id": [1], "sent": [1.0]}), mode="overwrite")
    with pytest.raises(AssertionError, match="twice"):
        event_latencies(tmp_path / "doubled")
    with pytest.raises(AssertionError, match="removes"):
        event_latencies(tmp_path / "replaced")


@given(st.lists(st.integers(0, 20), min_size=1), st.floats(0.01, 1.0))
def test_percentile_is_the_smallest_that_is_not_exceeded_more_often(values: list[int], share: float):
    """At least that share is at most the percentile, and of no smaller value is that true."""
    smallest = percentile(values, share)
    wanted = share * len(values) - 1e-9
    assert sum(value <= smallest for value in values) >= wanted
    assert sum(value < smallest for value in values) < share * len(values) + 1e-9


def test_events_come_at_their_times():
    """None comes before its time, none is left out, and what was late is made up for."""
    sent: list[tuple[int, float]] = []
    began = time.monotonic()

    def send(number: int) -> None:
        sent.append((number, time.monotonic() - began))
        if number == 2:
            time.sleep(0.1)

    with SteadyEvents(send, 100) as events:
        time.sleep(0.4)
    assert [number for number, _ in sent] == list(range(events.sent))
    assert all(when >= number / 100 for number, when in sent)
    assert events.sent > 15


def test_a_sender_that_fails_ends_the_measurement():
    """An event that could not be sent is an error, and no pause in the stream."""

    def send(number: int) -> None:
        raise OSError("no broker")

    with pytest.raises(OSError, match="no broker"), SteadyEvents(send, 100):
        time.sleep(0.05)


def test_slope():
    """Of a line it is the line's; of one position, none."""
    assert slope((5, 20, 50), (11.0, 41.0, 101.0)) == pytest.approx(2.0)
    assert slope((3, 3), (1.0, 2.0)) == 0


def test_live_bytes_of_a_heap():
    """The total of the histogram; a JVM that has ended has none."""
    assert live_bytes(HISTOGRAM) == 4.0
    assert live_bytes("") is None


def test_an_aged_table_has_its_rows_and_batches(tmp_path: Path):
    """Every repeated commit has a file, a row and a batch of its own, and another reader finds them behind a checkpoint."""
    for number in range(2):
        written = CommitProperties(app_transactions=[Transaction("stream", number)])
        write_deltalake(str(tmp_path), pa.table({"id": [number]}), mode="append", commit_properties=written)
    repeat_last_commit(tmp_path, 21)
    table = DeltaTable(str(tmp_path))
    assert (table.version(), last_batch(tmp_path), table.transaction_version("stream")) == (21, 21, 21)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0] + [1] * 21
    assert (tmp_path / "_delta_log" / f"{20:020}.checkpoint.parquet").exists()


def test_an_aged_checkpoint_has_the_last_hundred_batches(tmp_path: Path):
    """Each entry ends a version after the one before it, and the newest after the newest version."""
    place = {"reservoirId": "x", "reservoirVersion": 1, "index": -1, "isStartingVersion": True}
    for log, lines in (("offsets", ["v1", "{}", json.dumps(place)]), ("commits", ["v1", "{}"])):
        (tmp_path / log).mkdir()
        (tmp_path / log / "1").write_text("\n".join(lines))
        (tmp_path / log / ".1.crc").write_text("of the file that was there")
    renumber_checkpoint(tmp_path, batch=1000, source_version=1001)
    assert committed_batches(tmp_path) == list(range(901, 1001))
    assert not list(tmp_path.glob("*/.*"))
    for batch in (901, 1000):
        expected = {**place, "reservoirVersion": batch + 2, "isStartingVersion": False}
        assert read_offsets(tmp_path, batch).source(0) == expected
