"""From an event's sending to the commit of the gold table that has it: Kafka to bronze to silver to gold, beside the same by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.driver import Driver
from tests.benchmarks.frame.latencies import event_latencies, percentile
from tests.benchmarks.frame.programs import PEERS, headwater_run, session
from tests.benchmarks.frame.runs import Run
from tests.benchmarks.frame.steady_events import EventSender, SteadyEvents
from tests.benchmarks.peers import chain

from headwater_demo.kafka_broker import KafkaBroker

HERE = Path(__file__).parent / "streamed"
OURS, PEER = "headwater", "by hand"
FIGURES = {"p50": 0.5, "p99": 0.99}
INTERVAL = "pipelines.trigger.interval"
# A driver on a busy machine needs this long for what is left when the last event was sent.
_LEFT_SECONDS = 120.0


def test_latency(bench: Bench, tmp_path: Path) -> None:
    """The median and the 99th percentile are at most 1.05 of those of three streams written by hand."""
    with KafkaBroker(tmp_path / "kafka") as broker:
        measure(bench, tmp_path, broker)
    bench.finish()


def measure(bench: Bench, root: Path, broker: KafkaBroker) -> None:
    """In each round each of them begins with a topic and with tables of its own; the first seconds are not counted."""
    pace = bench.size("events_a_second", 20, smoke=0)
    before = bench.size("seconds_before", 15, smoke=0)
    seconds = bench.size("seconds_of_events", min(60, max(15, int(bench.seconds / 6))), smoke=0)
    interval = f"{bench.size('trigger_ms', 1000, smoke=0)} milliseconds"

    def contender(name: str) -> Callable[[int], dict[str, Run]]:
        def run(number: int) -> dict[str, Run]:
            place, topic = root / f"{name} {number}", f"events-{len(name)}-{number}"
            command, gold = _both(place, broker, topic, interval)[name]
            return _latencies(Driver(command, root / f"{name}.log"), gold, EventSender(broker, topic), pace, before, seconds)  # fmt: skip

        return run

    part = "Kafka to gold"
    bench.interleaved(part, {name: contender(name) for name in (OURS, PEER)}, least=3, most=5)
    for figure in FIGURES:
        bench.compare(f"{part}, {figure}", OURS, PEER, at_most(1.05))


def smoke(bench: Bench, root: Path, broker: KafkaBroker) -> None:
    """Both bring each event to gold once: ours in an update that ends, the streams by hand until they have."""
    events, topic = bench.size("events", 0, smoke=20), "events-of-the-smoke-test"
    sender = EventSender(broker, topic)
    for number in range(events):
        sender.send(number)
    sender.flush()
    headwater_run(bench, [*_arguments(root, broker, topic), "--no-continuous"])
    queries = chain.start(session(), broker.bootstrap_servers, topic, root / "theirs", "100 milliseconds")
    ends = time.monotonic() + 60
    for _, gold in _both(root, broker, topic, "").values():
        while len(event_latencies(gold)) < events:
            assert all(query.isActive for query in queries), [query.exception() for query in queries]
            assert time.monotonic() < ends, f"{gold} has not all events"
            time.sleep(0.1)
        _check(event_latencies(gold), events)
    for query in queries:
        query.stop()


def _arguments(root: Path, broker: KafkaBroker, topic: str) -> list[str | Path]:
    return [
        HERE, "--storage", root / "storage", "--warehouse", root / "warehouse",
        "--param", f"servers={broker.bootstrap_servers}", "--param", f"topic={topic}",
    ]  # fmt: skip


def _both(
    root: Path, broker: KafkaBroker, topic: str, interval: str
) -> dict[str, tuple[Sequence[str | Path], Path]]:
    """The command of each, and its gold table."""
    ours = [
        sys.executable, "-m", "headwater", "run", *_arguments(root, broker, topic), "--continuous",
        "--param", f"{INTERVAL}={interval}",
    ]  # fmt: skip
    theirs = [sys.executable, PEERS / "chain.py", broker.bootstrap_servers, topic, root / "theirs", interval]
    return {OURS: (ours, root / "warehouse/bench/gold"), PEER: (theirs, root / "theirs/tables/gold")}


def _latencies(
    driver: Driver, gold: Path, sender: EventSender, pace: int, before: int, seconds: int
) -> dict[str, Run]:
    """Run a driver while events come, and end it when gold has all; the figures of those sent in the counted seconds."""
    try:
        with SteadyEvents(sender.send, pace) as events:
            driver.start()
            driver.wait_until(lambda: bool(event_latencies(gold)), "no event in gold", pause=0.5)
            time.sleep(before)
            first, used = events.sent, driver.cpu_seconds()
            time.sleep(seconds)
            last, used = events.sent, driver.cpu_seconds() - used
        sender.flush()
        driver.wait_until(
            lambda: len(event_latencies(gold)) >= events.sent, "not all events in gold", pause=0.5, longest=_LEFT_SECONDS
        )  # fmt: skip
    finally:
        driver.kill()
    latencies = event_latencies(gold)
    _check(latencies, events.sent)
    counted = [latencies[number] for number in range(first, last)]
    return {figure: Run(percentile(counted, share), used) for figure, share in FIGURES.items()}


def _check(latencies: dict[int, float], events: int) -> None:
    """Each event is there, and came after it was sent; that none is there twice was checked when the table was read."""
    assert sorted(latencies) == list(range(events))
    assert min(latencies.values()) > 0
