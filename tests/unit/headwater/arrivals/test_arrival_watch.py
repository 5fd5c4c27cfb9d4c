"""When data is announced, and that it is announced once."""

from __future__ import annotations

import fcntl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.arrivals.arrival_rule import ArrivalRule
from headwater.arrivals.arrival_watch import AGAIN_SECONDS, ArrivalWatch
from headwater.arrivals.unread import Unread, UnreadSource
from headwater.errors import SourceUnreachable, UsageError
from headwater.event_log.details import UpdateState, create_update, update_progress
from headwater.event_log.writer import EventLogWriter


class World:
    """A pipeline's sources and its updates, and a clock."""

    def __init__(self, pipeline) -> None:
        self.project, self.manifest = pipeline.project, pipeline.manifest
        self.here = Unread()
        self.now = 1_000_000.0
        self.updates = 0

    def arrive(self, mark, files=1, measure="files"):
        """Something is there to read, and nothing else."""
        self.here = Unread((UnreadSource("bronze", "landing", measure, files, mark),))

    def update(self, takes=True):
        """An update runs, and reads what is there or fails."""
        self.begin().close()
        if takes:
            self.here = Unread()

    def begin(self, ends=UpdateState.COMPLETED):
        self.updates += 1
        log = EventLogWriter(self.project.state_folder, "orders", "orders", f"u{self.updates}", None)
        log.emit("create_update", "begun", details=create_update())
        if ends is not None:
            log.emit("update_progress", "ended", details=update_progress(ends))
        log.flush()
        return log

    def watch(self, watcher=None, **rule):
        """A watch as a triggerer has it after its start."""
        return ArrivalWatch(
            "orders",
            lambda: (self.project, self.manifest),
            ArrivalRule.checked(**rule),
            lambda: self.now,
            lambda project, manifest: self.here,
            watcher,
        )

    def announced(self, watch):
        """Look, and have Airflow store what is announced."""
        arrival = watch.look()
        if arrival is not None:
            watch.acknowledge(arrival)
        return arrival is not None


@pytest.fixture
def world(pipeline):
    return World(pipeline)


def test_each_arrival_is_announced_once_and_across_restarts(world):
    """New data, no second time before or after its update, also by a new triggerer; then the next data."""
    watch = world.watch()
    assert not world.announced(watch)
    world.arrive("1")
    assert [world.announced(watch), world.announced(watch), world.announced(world.watch())] == [
        True,
        False,
        False,
    ]
    world.update()
    assert not world.announced(world.watch())
    world.arrive("2")
    assert [world.announced(world.watch()), world.announced(watch)] == [True, False]


def test_what_was_not_stored_is_announced_again(world):
    """A triggerer that is killed before Airflow has stored the event announces it again."""
    world.arrive("1")
    assert world.watch().look() is not None
    assert world.announced(world.watch())
    assert not world.announced(world.watch())


def test_an_update_that_fails_is_not_asked_for_again_by_the_same_data(world):
    """What an update left behind unchanged waits for other data; other data wakes again."""
    world.arrive("1")
    assert world.announced(world.watch())
    world.update(takes=False)
    world.now += 10 * AGAIN_SECONDS
    assert not world.announced(world.watch())
    world.arrive("2")
    assert world.announced(world.watch())


def test_what_comes_before_the_update_has_begun_is_left_to_it(world):
    """A busy source makes one run after another, never a heap of them."""
    watch = world.watch()
    assert [world.arrive(str(n)) or world.announced(watch) for n in range(20)] == [True] + [False] * 19


def test_an_update_that_runs_is_left_alone(world):
    """Data that it reads at this moment is unread until it commits; what it leaves is announced when it has ended."""
    world.arrive("1")
    log = world.begin(ends=None)
    lease = world.project.state_folder / "update.lease"
    with lease.open("w") as lease_file:
        fcntl.flock(lease_file, fcntl.LOCK_EX)
        assert not world.announced(world.watch())
    # Killed: nobody holds the lease any more, and its end will never be recorded.
    assert world.announced(world.watch())
    log.close()


def test_a_lost_request_is_repeated_more_and_more_rarely(world):
    """No update has begun though one was asked for (its DAG was paused in between): after 10 minutes, then 20, then 40."""
    world.arrive("1")
    assert world.announced(world.watch())
    gaps = []
    for _ in range(3):
        begun = world.now
        while not world.announced(world.watch()):
            world.now += 60
        gaps.append(round((world.now - begun) / AGAIN_SECONDS, 1))
    assert gaps == [1, 2, 4]


def test_what_a_paused_dag_did_not_hear_is_announced_to_its_next_watcher(world):
    """Airflow gives a DAG that was paused another watcher: it asks at once for an update that has not begun, and once."""
    world.arrive("1")
    assert world.announced(world.watch(7))
    assert not world.announced(world.watch(7)), "the triggerer was started again"
    assert [world.announced(world.watch(8)), world.announced(world.watch(8))] == [True, False]
    world.update(takes=False)
    assert not world.announced(world.watch(9)), "an update has had its chance"


def test_a_watcher_that_is_not_known_is_no_other_one(world):
    """Where Airflow does not say which watcher it is, before or now, an update that is still to come is not asked for again."""
    world.arrive("1")
    assert world.announced(world.watch(7))
    assert not world.announced(world.watch())
    world.update()
    world.arrive("2")
    assert world.announced(world.watch())
    assert not world.announced(world.watch(7))


def test_data_that_is_known_to_be_old_has_waited(world):
    """Files that lay there before the watch began count with their own age for the longest wait."""
    watch = world.watch(files=3, wait_seconds=300)
    world.here = Unread((UnreadSource("bronze", "landing", "files", 1, "1", seconds=299.0),))
    assert not world.announced(watch)
    world.here = Unread((UnreadSource("bronze", "landing", "files", 1, "1", seconds=300.0),))
    assert world.announced(watch)


def test_quiet_and_least_and_longest(world):
    """Files still arrive: wait. Too few: wait. Both no longer than `wait_seconds`."""
    watch = world.watch(quiet_seconds=30, files=3, wait_seconds=300)
    announced = {}
    for second in range(0, 200, 10):
        world.now += 10
        world.arrive(str(min(second, 100)), files=5)
        announced[second] = world.announced(watch)
    assert [second for second, is_announced in announced.items() if is_announced] == [130]
    world.update()
    assert not world.announced(watch)
    world.arrive("few", files=2)
    waited = 0
    while not world.announced(watch):
        world.now, waited = world.now + 10, waited + 10
    assert waited == 300


def test_a_damaged_memory_announces_once_more(world):
    """Whatever stands in the file: one run too many, never one too few, and never an error."""
    world.arrive("1")
    watch = world.watch()
    for text in ("", "{", "[]", '{"marks": 1}', '{"marks": {}, "after_update": null, "at": "x", "times": 1}'):
        assert world.announced(watch)
        watch.memory(world.project).write_text(text)
    assert world.announced(watch)
    assert not world.announced(watch)


def test_a_pipeline_without_a_manifest_is_updated_once(world):
    """Its sources are not known before its first update."""
    world.manifest = None
    assert [world.announced(world.watch()), world.announced(world.watch())] == [True, False]


def test_sources_that_can_not_be_read(world):
    """A transient error with the reason where nothing else is to be announced; beside other data it is no obstacle."""
    world.here = Unread(unknown=("bronze: Kafka at b:1 did not answer.",))
    with pytest.raises(SourceUnreachable, match="did not answer"):
        world.watch().look()
    world.here = Unread((UnreadSource("a", "b", "files", 1, "1"),), ("c: gone",))
    assert world.announced(world.watch())


@pytest.mark.parametrize(
    "rule",
    [
        {"files": 0},
        {"records": -1},
        {"quiet_seconds": -1},
        {"quiet_seconds": float("nan")},
        {"quiet_seconds": 10, "wait_seconds": 5},
        {"wait_seconds": float("inf")},
    ],
)
def test_rules_without_a_meaning(rule):
    """They are refused before anything waits for them."""
    with pytest.raises(UsageError):
        ArrivalRule.checked(**rule)


@given(
    files=st.integers(1, 9),
    records=st.integers(1, 9),
    here=st.dictionaries(st.sampled_from(["files", "records"]), st.integers(0, 9), min_size=1),
)
def test_one_measure_that_is_reached_is_enough(files, records, here):
    """The rule is met exactly where one kind of source has what is asked of it."""
    rule = ArrivalRule.checked(files=files, records=records)
    arrived = Unread(tuple(UnreadSource("a", name, name, amount, "") for name, amount in here.items()))
    least = {"files": files, "records": records}
    expected = any(amount >= least[name] for name, amount in here.items())
    assert rule.is_met(arrived, quiet=0, waited=0) == expected
