"""However often the driver is killed, and wherever, every table ends up as one query over all the data."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.fault_injection.crash_matrix import BESIDE_OTHERS, matrix
from tests.fault_injection.crash_points import POINTS, any_time
from tests.fault_injection.driver import Driver
from tests.fault_injection.killed_pipeline import (
    SETTINGS,
    SOURCE,
    Feed,
    Outbox,
    check_at_any_moment,
    check_endings,
    check_messages,
    check_records,
    check_tables,
)
from tests.fault_injection.stops import Stop, stopping_settings
from tests.pipeline_case import PipelineCase

from headwater.local_stack.kafka_broker import KafkaBroker

# The soak: every cell of the matrix, and then so many kills at random.
SOAK = "SOAK_RUNS" in os.environ
RANDOM_KILLS = int(os.environ.get("SOAK_RUNS", "1"))
SAMPLED_CELLS = 4
# A regular expression for the cells to run (their names are printed): to run one again.
CELLS = os.environ.get("HEADWATER_CELLS")
# The sample is the same each time: what the soak found must not stop a change that has nothing to do with it.
SEED = int(os.environ.get("HEADWATER_SEED") or (random.SystemRandom().randrange(10**6) if SOAK else 22))


class Trial:
    """A pipeline, the files that land for it, and the drivers that were started."""

    def __init__(self, case: PipelineCase, chance: random.Random, outbox: Outbox | None) -> None:
        self.case, self.chance, self.outbox = case, chance, outbox
        self.feed = Feed(case, chance)
        self.drivers: list[Driver] = []

    def start(self, *arguments: str, stop: Stop | None = None, name: str = "driver") -> Driver:
        """Start a driver."""
        self.drivers.append(Driver.start(self.case, *arguments, stop=stop, name=name))
        return self.drivers[-1]

    def completes(self, driver: Driver) -> None:
        """Wait for its end, which is a good one."""
        code, answer = driver.answer()
        assert (code, answer.get("state")) == (0, "COMPLETED"), driver.told()

    def kill_in(self, cell: Stop) -> bool:
        """Kill a driver in a cell of the matrix; False where it ended well without coming there."""
        self.feed.land(2)
        if cell.backfill is not None:
            self.completes(self.start())
        driver = self.start(stop=cell)
        if not driver.wait_for(driver.stopped.exists, self.feed.now_and_then):
            self.completes(driver)
            print(f"  {cell} was not reached")
            return False
        cell.meanwhile(self.case)
        driver.kill(alone=cell.alone)
        if cell.alone:
            assert driver.all_ended(30), "a JVM outlived its driver"
        cell.afterwards(self.case)
        check_at_any_moment(self.case, self.feed)
        return True

    def kill_at_random(self) -> None:
        """Kill a driver at a moment that is seen from outside."""
        point = self.chance.choice(POINTS)
        for tried in (point, any_time, any_time, any_time):
            self.feed.land(self.chance.randint(1, 3))
            alone, moment = self.chance.random() < 0.3, tried(self.case, self.chance)
            driver = self.start()
            if driver.wait_for(moment, self.feed.now_and_then):
                driver.kill(alone=alone)
                print(f"  {tried.__name__}, {alone=}")
                check_at_any_moment(self.case, self.feed)
                return
            self.completes(driver)
        raise AssertionError("every driver ended before its moment came")

    def drivers_beside(self) -> None:
        """Two drivers beside one that stands in the middle of a batch.

        Who comes by hand is refused and told of the holder. Airflow's next try waits, and goes on when the zombie is dead.
        """
        self.feed.land(2)
        zombie = self.start(stop=BESIDE_OTHERS)
        assert zombie.wait_for(zombie.stopped.exists, self.feed.now_and_then), zombie.told()
        by_hand = self.start(name="by_hand")
        retry = self.start("--request-id=of-airflow", "--attempt=2", "--max-attempts=3", name="retry")
        code, answer = by_hand.answer()
        assert (code, answer["error"]["condition"]) == (3, "UPDATE_IN_PROGRESS"), by_hand.told()
        assert f'"process": {zombie.process.pid}' in answer["error"]["message"]
        retry.waits_for(self.case.project().state_folder / "update.lease")
        zombie.kill(alone=False)
        self.completes(retry)

    def last_update(self) -> None:
        """One that nobody kills."""
        self.feed.land(1)
        self.completes(self.start())

    def compare(self) -> None:
        """What all of them have written, and left."""
        assert all(driver.all_ended(20) for driver in self.drivers), "a JVM outlived its driver"
        check_tables(self.case, self.feed)
        for flow in ("bronze", "doubled", "running", "judged", "latest", "history"):
            check_records(self.case, flow)
        check_endings(self.case)
        if self.outbox is not None:
            check_messages(self.outbox, self.feed)


def chosen_cells(chance: random.Random, *, kafka: bool) -> list[Stop]:
    """All cells in the soak, those that were asked for, or a sample."""
    cells = matrix(kafka=kafka)
    if CELLS:
        return [cell for cell in cells if re.search(CELLS, str(cell))]
    if SOAK:
        return chance.sample(cells, len(cells))
    # A checkpoint of a log is due every tenth commit here.
    return chance.sample([cell for cell in cells if cell.point != 10], SAMPLED_CELLS)


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    """The pipeline; in the soak it sends to a broker, too."""
    again = (
        f"make soak SEED={SEED} RUNS={RANDOM_KILLS}" if SOAK else f"HEADWATER_SEED={SEED} make test-faults"
    )
    print(f"\nthe same choices again: {again}")
    chance = random.Random(SEED)
    settings = SETTINGS | stopping_settings(tmp_path / "classes")
    with KafkaBroker(tmp_path / "kafka") if SOAK or CELLS else nullcontext() as broker:
        source, outbox = SOURCE, None
        if broker is not None:
            broker.create_topic("outbox")
            outbox = Outbox(broker)
            # So that a checkpoint of each log is due in each update.
            source = SOURCE.replace('"10"', '"1"') + outbox.source()
        case = PipelineCase(tmp_path, source, spec=f"spark: {json.dumps(settings)}\n")
        trial = Trial(case, chance, outbox)
        try:
            yield trial
        finally:
            for driver in trial.drivers:
                driver.kill_group()


@pytest.mark.timeout(300 + 60 * (RANDOM_KILLS + (120 if SOAK or CELLS else SAMPLED_CELLS)))
def test_killed_at_each_point(trial: Trial):
    """Killed at points of the matrix and at random while files keep coming, then left alone: no row is missing or doubled,
    and the event log has one record of each batch. Of several drivers at once one runs.
    """
    cells = chosen_cells(trial.chance, kafka=trial.outbox is not None)
    for number, cell in enumerate(cells, start=1):
        started = time.monotonic()
        # Which batch closes a checkpoint, or has anything to quarantine, is not the same in each update.
        reached = any(trial.kill_in(cell) for _ in range(3))
        print(f"{number}/{len(cells)} {cell}: {time.monotonic() - started:.1f} s", flush=True)
        assert reached, f"no driver came to {cell}"
    for _ in range(0 if CELLS else RANDOM_KILLS):
        trial.kill_at_random()
    trial.last_update() if CELLS else trial.drivers_beside()
    trial.compare()
