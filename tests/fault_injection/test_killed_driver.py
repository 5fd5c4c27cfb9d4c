"""However often the driver is killed, and wherever, every table ends up as one query over all the data.

Decision 0060.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.fault_injection.crash_matrix import BESIDE_OTHERS, kills, matrix
from tests.fault_injection.crash_points import POINTS, any_time, starting
from tests.fault_injection.driver import Driver
from tests.fault_injection.killed_pipeline import (
    APPENDED,
    SETTINGS,
    SOURCE,
    Feed,
    Outbox,
    check_appended,
    check_at_any_moment,
    check_endings,
    check_messages,
    check_records,
    check_tables,
)
from tests.fault_injection.stops import Stop, stopping_settings
from tests.lasting_store import lasting_store
from tests.pipeline_case import PipelineCase
from tests.seeds import SEED
from tests.stored_case import BUCKET, StoredCase

from headwater.runtime.cache import cache_root
from headwater_demo.kafka_broker import KafkaBroker

# The soak: every cell of the matrix, and then so many kills at random. Else every point at each of its moments, for one kind of
# flow. Left to the soak: checkpoints of Delta's log (10), which are due every tenth commit here, and the sink to Kafka.
SOAK = "SOAK_RUNS" in os.environ
# Else, of a store: moments at which its way of writing is another one than a disk's, in two kills of a part of the pipeline.
ON_A_STORE = r"^3/append/writing$|^7/quarantine/writing$|^9/aggregate/written$"
# So that a difference is found near its cause.
COMPARED_EVERY = 8
# A regular expression for the cells to run (their names are printed): to run one again; "none" has random kills alone.
CELLS = os.environ.get("HEADWATER_CELLS")
RANDOM_KILLS = int(os.environ.get("SOAK_RUNS") or (0 if CELLS else 1))
# Two pipelines share the kills on a disk, so that two processes have the same to do.
PLACES = ("disk", "s3") if SOAK or CELLS else ("disk, half of it", "disk, the other half", "s3")
# Begin no other kill after so long: what was killed until then is compared, and what was left out is told.
LONGEST = float(os.environ.get("SOAK_SECONDS") or "inf")

# Kills in the first batch of all find other things than those in later ones: odd seeds of the soak begin with nothing.
FIRST_UPDATE = not (SOAK and SEED % 2)


class Trial:
    """A pipeline, the files that land for it, and the drivers that were started."""

    def __init__(self, case: PipelineCase, chance: random.Random, outbox: Outbox | None, place: str) -> None:
        """``place``: one of PLACES."""
        self.case, self.chance, self.outbox = case, chance, outbox
        self.short = is_short(place)
        self.half = PLACES.index(place) if place.startswith("disk,") else None
        self.feed = Feed(case, chance)
        self.drivers: list[Driver] = []
        self.killed = 0
        self._ready: Driver | None = None

    def warm(self) -> Driver:
        """A driver that has started Spark, or is about to; the next one is begun."""
        driver = self._ready or Driver.warm(self.case, f"warm-{len(self.drivers)}")
        self.drivers.append(driver)
        self._ready = Driver.warm(self.case, f"warm-{len(self.drivers)}")
        return driver

    def first_update(self) -> None:
        """One that nobody kills, so that the kills find tables with rows in them."""
        self.feed.land(2)
        driver = Driver.warm(self.case, "first")
        self.drivers.append(driver)
        driver.go()
        self.completes(driver)
        driver.must_end(120)

    def start(self, *arguments: str, stops: Sequence[Stop] = ()) -> Driver:
        """Have a waiting driver begin."""
        driver = self.warm()
        driver.go(*arguments, stops=stops)
        return driver

    def cold(self, name: str, *arguments: str) -> Driver:
        """Start the command itself."""
        self.drivers.append(Driver.cold(self.case, f"{name}-{len(self.drivers)}", *arguments))
        return self.drivers[-1]

    def dismiss(self) -> None:
        """End the one that waits."""
        if self._ready is not None:
            self._ready.kill(alone=False)
        self._ready = None

    def completes(self, driver: Driver) -> None:
        """Wait for its end, which is a good one."""
        code, answer = driver.answer()
        assert (code, answer.get("state")) == (0, "COMPLETED"), driver.errors()

    def kill(self, driver: Driver, *, alone: bool) -> None:
        """End it, and look at what it left."""
        driver.kill(alone=alone)
        if alone:
            driver.must_end(30)
        self.killed += 1

    def kill_in(self, cells: Sequence[Stop]) -> list[Stop]:
        """Kill a driver in cells of the matrix; gives those that it came to, none where it ended well before."""
        self.feed.land(2)
        if cells[0].backfill is not None:
            self.completes(self.start())
        driver = self.start(stops=cells)
        if not driver.wait_for(driver.stands, self.feed.now_and_then):
            self.completes(driver)
            return []
        reached = driver.reached()
        for cell in reached:
            cell.meanwhile(self.case)
        self.kill(driver, alone=cells[0].alone)
        for cell in reached:
            cell.afterwards(self.case)
        check_at_any_moment(self.case, self.feed)
        return reached

    def visit(self, cells: Sequence[Stop]) -> None:
        """Kill in all of these cells, with as many drivers as that takes."""
        left = list(cells)
        # Which batch closes a checkpoint, or has anything to quarantine, is not the same in each update.
        for _ in range(3):
            started = time.monotonic()
            reached = self.kill_in(left)
            left = [cell for cell in left if cell not in reached]
            print(
                f"  killed at {', '.join(map(str, reached)) or 'none'}: {time.monotonic() - started:.1f} s",
                flush=True,
            )
            if not left:
                return
        raise AssertionError(f"no driver came to {', '.join(map(str, left))}")

    def kill_at_random(self) -> None:
        """Kill a driver at a moment that is seen from outside."""
        # Now and then one is killed while it starts Spark.
        point = starting if self.chance.random() < 0.1 else self.chance.choice(POINTS)
        for tried in (point, any_time, any_time, any_time):
            started = time.monotonic()
            self.feed.land(self.chance.randint(1, 3))
            alone, moment = self.chance.random() < 0.3, tried(self.case, self.chance)
            begin = partial(self.cold, "random") if tried is starting else self.start
            driver = begin(*moment.arguments)
            if driver.wait_for(lambda d=driver, m=moment: m.met(d.folder / "log"), self.feed.now_and_then):  # type: ignore[misc]
                self.kill(driver, alone=alone)
                print(f"  {moment}, {alone=}: {time.monotonic() - started:.1f} s", flush=True)
                check_at_any_moment(self.case, self.feed)
                return
            self.completes(driver)
        raise AssertionError("every driver ended before its moment came")

    def drivers_beside(self) -> None:
        """Two drivers beside one that stands in the middle of a batch.

        Who comes by hand is refused and told of the holder. Airflow's next try waits, and goes on when the zombie is dead.
        """
        self.feed.land(2)
        zombie = self.start(stops=(BESIDE_OTHERS,))
        assert zombie.wait_for(zombie.stands, self.feed.now_and_then), zombie.errors()
        by_hand = self.cold("by_hand")
        retry = self.warm()
        retry.go("--request-id=of-airflow", "--attempt=2", "--max-attempts=3")
        code, answer = by_hand.answer()
        assert (code, answer["error"]["condition"]) == (3, "UPDATE_IN_PROGRESS"), by_hand.errors()
        assert f"process {zombie.process.pid} of " in answer["error"]["message"]
        retry.logs(f"process {zombie.process.pid} of ")
        self.kill(zombie, alone=False)
        self.completes(retry)

    def last_update(self) -> None:
        """One that nobody kills."""
        self.feed.land(1)
        self.completes(self.start())

    def compare(self) -> None:
        """What all of them have written, and left."""
        for driver in self.drivers:
            driver.must_end(20)
        (check_appended if self.short else check_tables)(self.case, self.feed)
        flows = ("bronze", "running", "judged", *(() if self.short else ("doubled", "latest", "history")))
        for flow in flows:
            check_records(self.case, self.feed, flow)
        check_endings(self.case)
        if self.outbox is not None:
            check_messages(self.outbox, self.feed)
        print(f"  equal after {self.killed} kills", flush=True)


def is_short(place: str) -> bool:
    """Whether a place sees few kills, in a pipeline without merges: a store, unless all kills are asked for."""
    return place == "s3" and not (SOAK or CELLS)


def asked_for(*, kafka: bool, pattern: str | None = CELLS) -> list[Stop]:
    """All cells, or those of a regular expression."""
    return [cell for cell in matrix(kafka=kafka) if pattern is None or re.search(pattern, str(cell))]


def chosen_kills(chance: random.Random, *, kafka: bool, short: bool) -> list[tuple[Stop, ...]]:
    """Those that serve all cells in the soak, the cells of HEADWATER_CELLS, or one of each point and moment; resets last: they
    would hide losses. ``short``: those of ON_A_STORE.
    """
    if short:
        return kills(asked_for(kafka=kafka, pattern=ON_A_STORE))
    cells = asked_for(kafka=kafka)
    if SOAK or CELLS:
        chosen = kills(chance.sample(cells, len(cells)))
    else:
        chosen = one_of_each(chance.sample(cells, len(cells)))
    return sorted(chance.sample(chosen, len(chosen)), key=lambda cells: bool(cells[0].arguments))


def one_of_each(cells: Sequence[Stop]) -> list[tuple[Stop, ...]]:
    """Kills that come to every point and moment but 10."""
    seen: set[tuple[int, str]] = set()
    chosen = []
    for together in sorted(kills([cell for cell in cells if cell.point != 10]), key=len, reverse=True):
        moments = {(cell.point, cell.moment) for cell in together}
        if not moments <= seen:
            chosen.append(together)
            seen |= moments
    return chosen


@pytest.fixture(params=PLACES)
def case_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """How a pipeline is made: by its folder, source and settings. Both its roots lie on a disk, then both on S3."""
    if request.param != "s3":
        settings = SETTINGS | stopping_settings(tmp_path / "classes")
        yield lambda source: PipelineCase(tmp_path, source, spec=f"spark: {json.dumps(settings)}\n")
        return
    stopping_settings(tmp_path / "classes")
    # What is copied to this machine goes with the store.
    monkeypatch.setenv("HEADWATER_CACHE", str(cache_beside(tmp_path)))
    with lasting_store(tmp_path / "store") as store:
        store.make_bucket(BUCKET)
        yield lambda source: StoredCase(tmp_path, source, spec=f"spark: {json.dumps(SETTINGS)}\n")


def cache_beside(folder: Path) -> Path:
    """A cache of its own with the jars and the classes of everybody's."""
    cache = folder / "cache"
    cache.mkdir()
    for name in ("jars", "classes"):
        (cache / name).symlink_to(cache_root() / name)
    return cache


@pytest.fixture
def trial(
    request: pytest.FixtureRequest, case_of: Callable[[str], PipelineCase], tmp_path: Path
) -> Iterator[Trial]:
    """The pipeline; in the soak it sends to a broker, too."""
    again = (
        f"make soak SEED={SEED} RUNS={RANDOM_KILLS}" if SOAK else f"HEADWATER_SEED={SEED} make test-faults"
    )
    print(f"\nthe same choices again: {again}")
    chance = random.Random(SEED)
    with KafkaBroker(tmp_path / "kafka") if SOAK or CELLS else nullcontext() as broker:
        place = request.node.callspec.params["case_of"]
        source, outbox = APPENDED if is_short(place) else SOURCE, None
        if broker is not None:
            broker.create_topic("outbox")
            outbox = Outbox(broker)
            source = SOURCE + outbox.source()
        if (SOAK or CELLS) and any(cell.point == 10 for cell in asked_for(kafka=True)):
            # So that a checkpoint of each log is due in each update.
            source = source.replace('"10"', '"1"')
        trial = Trial(case_of(source), chance, outbox, place)
        try:
            yield trial
        finally:
            trial.dismiss()
            for driver in trial.drivers:
                driver.kill_group()


@pytest.mark.timeout(300 + 60 * (RANDOM_KILLS + 60))
def test_killed_at_each_point(trial: Trial):
    """Killed at points of the matrix and at random while files keep coming, then left alone: no row is missing or doubled,
    and the event log has one record of each batch. Of several drivers at once one runs.
    """
    cells = chosen_kills(trial.chance, kafka=trial.outbox is not None, short=trial.short)
    if trial.half is not None:
        cells = cells[trial.half :: 2]
    if FIRST_UPDATE and not trial.short:
        trial.first_update()
    started = time.monotonic()
    for number, together in enumerate(cells, start=1):
        if time.monotonic() - started > LONGEST:
            print(f"  left out: {'; '.join(', '.join(map(str, left)) for left in cells[number - 1 :])}")
            break
        trial.visit(together)
        resets_come = number < len(cells) and bool(cells[number][0].arguments) > bool(together[0].arguments)
        if number < len(cells) and (number % COMPARED_EVERY == 0 or resets_come):
            trial.last_update()
            trial.compare()
    for _ in range(0 if trial.short else RANDOM_KILLS):
        if time.monotonic() - started > LONGEST:
            break
        trial.kill_at_random()
    trial.last_update() if CELLS or trial.short or trial.half == 1 else trial.drivers_beside()
    trial.dismiss()
    trial.compare()
