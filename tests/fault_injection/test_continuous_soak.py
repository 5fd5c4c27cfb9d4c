"""A continuous update of nine flows runs for long, is killed now and then, and is compared with one query over all the data.

They read files, Delta tables and a topic of Kafka; among them are an aggregation with state, AUTO CDC of both kinds, and a quarantine.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from deltalake.exceptions import DeltaError
from tests.continuous_driver import ContinuousDriver
from tests.fault_injection.killed_pipeline import (
    SETTINGS,
    SOURCE,
    Feed,
    check_at_any_moment,
    check_endings,
    check_records,
    check_tables,
)
from tests.pipeline_case import PipelineCase
from tests.seeds import SEED

from headwater_demo.kafka_broker import KafkaBroker

SECONDS = float(os.environ.get("SOAK_SECONDS") or 60)
# A driver lives at least as long as it takes to start and to write some batches. SOAK_RUNS=0: none is killed.
LIVES = (25.0, 150.0) if os.environ.get("SOAK_RUNS") != "0" else (SECONDS, SECONDS)
RECEIVED = """
@dp.table
def received():
    topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "BROKER").option("subscribe", "rows")
    value = F.from_json(F.col("value").cast("string"), "id INT, team STRING, points INT").alias("row")
    return topic.option("startingOffsets", "earliest").load().select(value).select("row.*")
"""
SPEC = "  pipelines.trigger.interval: 2 seconds\n"
SAMPLE_SECONDS = 30.0


@pytest.fixture
def case(tmp_path: Path, shared_broker: KafkaBroker) -> PipelineCase:
    shared_broker.create_topic("rows", partitions=2)
    source = SOURCE + RECEIVED.replace("BROKER", shared_broker.bootstrap_servers)
    return PipelineCase(tmp_path, source, spec=f"{SPEC}spark: {json.dumps(SETTINGS)}\n")


class FeedOfBoth(Feed):
    """Lands small files, and sends the same rows to a topic."""

    def __init__(self, case: PipelineCase, chance: random.Random, broker: KafkaBroker) -> None:
        super().__init__(case, chance)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def land(self, files: int) -> None:
        """Land some files now."""
        first = len(self.rows)
        super().land(files)
        for number, team, points in self.rows[first:]:
            self._producer.produce("rows", json.dumps({"id": number, "team": team, "points": points}))
        assert self._producer.flush(60) == 0


@pytest.fixture
def drivers(case: PipelineCase) -> Iterator[list[ContinuousDriver]]:
    started: list[ContinuousDriver] = []
    yield started
    for driver in started:
        driver.end()


def start(case: PipelineCase, drivers: list[ContinuousDriver]) -> ContinuousDriver:
    drivers.append(ContinuousDriver.start(case, f"driver-{len(drivers)}"))
    return drivers[-1]


def memory(driver: ContinuousDriver) -> str:
    """Resident memory of all processes by their names, and what the heap holds after a collection, in MiB."""
    sizes: Counter[str] = Counter()
    java = None
    try:
        root = psutil.Process(driver.process.pid)
        for process in (root, *root.children(recursive=True)):
            sizes[process.name()] += process.memory_info().rss >> 20
            java = process.pid if process.name() == "java" else java
    except psutil.NoSuchProcess:
        return f"{dict(sizes)}, some have just ended"
    return f"{dict(sizes)}, heap {live_heap(java) if java else '-'}"


def live_heap(java: int) -> str:
    """What a full collection leaves in the heap, and the metaspace, in MiB."""
    subprocess.run(["jcmd", str(java), "GC.run"], capture_output=True, check=False)
    done = subprocess.run(
        ["jstat", "-gc", str(java)], capture_output=True, text=True, check=False
    ).stdout.split()
    of = dict(zip(done[: len(done) // 2], done[len(done) // 2 :], strict=True))
    used = sum(float(of.get(name, 0)) for name in ("S0U", "S1U", "EU", "OU"))
    return f"{used / 1024:.0f}, metaspace {float(of.get('MU', 0)) / 1024:.0f}"


@pytest.mark.timeout(SECONDS + 600)
def test_killed_while_it_runs(
    case: PipelineCase, drivers: list[ContinuousDriver], shared_broker: KafkaBroker
):
    """Rows come for SOAK_SECONDS (a minute), and the driver is killed at random; in the end all tables equal the batch, each batch
    has one record and each update one end. What the drivers' memory was is printed.
    """
    chance = random.Random(SEED)
    feed, began = FeedOfBoth(case, chance, shared_broker), time.monotonic()
    feed.land(2)
    driver, kills = start(case, drivers), 0
    dies, sampled = time.monotonic() + chance.uniform(*LIVES), 0.0
    while time.monotonic() - began < SECONDS:
        assert driver.process.poll() is None, driver.log.read_text()[-4000:]
        feed.now_and_then()
        if time.monotonic() - sampled >= SAMPLE_SECONDS:
            sampled = time.monotonic()
            print(
                f"{time.monotonic() - began:6.0f} s, {kills} kills, {len(feed.rows)} rows: {memory(driver)}",
                flush=True,
            )
        if time.monotonic() >= dies:
            driver.kill()
            kills += 1
            check_at_any_moment(case, feed)
            driver = start(case, drivers)
            # The last one is left alone for the rest, so that its memory can be seen over time.
            alone = time.monotonic() - began > SECONDS / 2
            dies = time.monotonic() + (SECONDS if alone else chance.uniform(*LIVES))
        time.sleep(0.5)
    driver.wait_for(lambda: is_done(case, feed), "all rows in all tables", 240)
    print(
        f"{time.monotonic() - began:6.0f} s, {kills} kills, {len(feed.rows)} rows: {memory(driver)}",
        flush=True,
    )
    code, report = driver.stop()
    assert (code, report["state"]) == (1, "CANCELED"), report
    check_tables(case, feed)
    assert Counter(case.rows("received")) == Counter(feed.rows)
    check_endings(case)
    for flow in ("received", "bronze", "doubled", "running", "judged", "latest", "history"):
        check_records(case, feed, flow)


def is_done(case: PipelineCase, feed: Feed) -> bool:
    """Whether the last tables have all rows."""
    try:
        check_tables(case, feed)
        assert Counter(case.rows("received")) == Counter(feed.rows)
    except (AssertionError, OSError, DeltaError):
        return False
    return True
