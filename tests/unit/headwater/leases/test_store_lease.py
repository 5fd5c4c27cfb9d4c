"""A lease on an object store: one holder, whatever clocks and networks do."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError, LeaseLost, LeaseUnreachable, UpdateInProgress
from headwater.leases import store_lease as module
from headwater.leases.conditional_store import StoredText
from headwater.leases.file_lease import update_lease
from headwater.leases.holder import Holder, holder_of
from headwater.leases.store_lease import LIFETIME, MARGIN, RENEWAL, lock_identity, store_lease
from headwater.storage.conditions import StoreRefused


@dataclass
class Times:
    """Two clocks that a test sets: the store's, and the one that machines count by."""

    store: float = 1000.0
    machine: float = 50.0

    meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        """Let time go on, and others do what they do."""
        self.pass_by(seconds)
        self.meanwhile()

    def pass_by(self, seconds: float) -> None:
        """Let time go on for both."""
        self.store += seconds
        self.machine += seconds


@dataclass
class Store:
    """An object of an imagined store, which names what it has by its content, as S3 does with a plain put.

    ``answers``: whether it can be reached; ``lost``: answers that will get lost. ``slow``: seconds between a write and its answer.
    """

    times: Times
    text: str | None = None
    written: float = 0.0
    answers: bool = True
    lost: int = 0
    slow: float = 0.0
    requests: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> StoredText | None:
        """As it is."""
        self._reach()
        with self.turn:
            age = timedelta(seconds=self.times.store - self.written)
            return None if self.text is None else StoredText(self.text, self.tag, age)

    def write(self, text: str, *, expected: str | None) -> str | None:
        """Conditional, as S3 does it."""
        self._reach()
        with self.turn:
            if expected != (self.tag if self.text is not None else None):
                return None
            self.text, self.written = text, self.times.store
            tag = self.tag
        self.times.pass_by(self.slow)
        if self.lost:
            self.lost -= 1
            # The client asks again by itself, and is refused by what it wrote.
            return self.write(text, expected=expected)
        return tag

    @property
    def tag(self) -> str:
        """Names its content."""
        return hashlib.md5(str(self.text).encode(), usedforsecurity=False).hexdigest()

    def _reach(self) -> None:
        self.requests += 1
        assert self.requests < 20_000, "somebody asks again and again, without a pause"
        if not self.answers:
            raise LeaseUnreachable("away")


@pytest.fixture
def times() -> Times:
    """The clocks."""
    return Times()


@pytest.fixture
def store(times: Times) -> Store:
    """An empty store."""
    return Store(times)


@pytest.fixture
def hold(store: Store, times: Times) -> Callable[..., object]:
    """Take the lease under a name."""
    return lambda name, wait=timedelta(0), **more: store_lease(
        store, Holder(name, **more), wait=wait, clock=lambda: times.machine, sleep=times.sleep
    )


def test_the_second_is_refused_and_told_of_the_first(hold, store: Store):
    """As with the lock: the refusal names the holder, and tells when a dead one is known to be dead; the token grows."""
    with hold("first") as first:
        first.check()
        with pytest.raises(UpdateInProgress, match="first") as refused, hold("second"):
            pass
        assert f"in {LIFETIME.seconds} s at most" in refused.value.remedy
    with hold("second") as second:
        assert second.token == first.token + 1
        with pytest.raises(LeaseLost):
            first.check()
    assert holder_of(str(store.text))["free"] is True


def test_who_waits_says_for_whom_once(hold, caplog: pytest.LogCaptureFixture):
    """The log has a line of the holder when the wait begins, not one each time somebody looks."""
    caplog.set_level(logging.INFO, "headwater.leases")
    with hold("first"), pytest.raises(UpdateInProgress), hold("second", wait=timedelta(seconds=30)):
        pass
    assert [
        ("first, process" in record.getMessage(), "up to 30 s" in record.getMessage())
        for record in caplog.records
    ] == [(True, True)]


@pytest.mark.parametrize(
    "text",
    ["", "\ufffd\ufffd not JSON", "[1, 2]", '{"token": "abc", "free": true}', '{"token": {}, "host": 5}'],
)
def test_what_no_holder_wrote_is_free_after_its_time(hold, store: Store, times: Times, text: str):
    """Whatever lies at the lease's place counts as a holder's until its time is over, and keeps nobody out for longer."""
    store.text, store.written = text, times.store - LIFETIME.seconds - 1
    with hold("first") as first:
        first.check()
        assert first.token == 1


def test_only_the_dead_lose_it(hold, times: Times):
    """A holder that renews is never taken over, however long it runs; one that ceased to is after its time, and stands back
    before that.
    """
    with hold("first") as first:
        for _ in range(5):
            times.pass_by(LIFETIME.seconds - MARGIN.seconds - 1)
            first.renew()
            first.check()
            with pytest.raises(UpdateInProgress), hold("second"):
                pass
        times.pass_by(LIFETIME.seconds - MARGIN.seconds + 1)
        with pytest.raises(LeaseLost):
            first.check()
        with pytest.raises(UpdateInProgress), hold("second"):
            pass
        times.pass_by(MARGIN.seconds)
        with hold("second") as second:
            second.check()
            assert second.token == first.token + 1
            first.renew()
            with pytest.raises(LeaseLost, match="taken"):
                first.check()


@pytest.mark.parametrize("hours", [2, -2])
def test_the_stores_clock_is_set(hold, store: Store, times: Times, hours: int):
    """A holder that renews keeps its lease, whoever comes right after the jump; a dead one loses it to who waits for its time."""
    with hold("first") as first:
        times.store += hours * 3600
        begun, renewed = times.machine, 0

        def renew() -> None:
            nonlocal renewed
            if times.machine - begun >= (renewed + 1) * RENEWAL.total_seconds():
                renewed += 1
                first.renew()

        times.meanwhile = renew
        with pytest.raises(UpdateInProgress), hold("second"):
            pass
        first.check()
        times.meanwhile = lambda: None
        later = store_lease(
            store, Holder("second"), clock=lambda: times.machine, sleep=times.sleep, wait=2 * LIFETIME
        )
        begun = times.machine
        with later as second:
            assert times.machine - begun <= LIFETIME.total_seconds() + 1
            second.check()
            first.renew()
            with pytest.raises(LeaseLost):
                first.check()


def test_a_slow_answer_is_no_longer_life(hold, store: Store, times: Times):
    """The store counts from when it wrote, so a holder counts from before it asked: while it trusts its lease, nobody takes it."""
    store.slow = MARGIN.seconds + 1
    for renewed in (False, True):
        with hold("first") as first:
            if renewed:
                first.renew()
            times.pass_by(LIFETIME.seconds - store.slow)
            with pytest.raises(LeaseLost):
                first.check()
            with hold("second"):
                pass


@pytest.mark.parametrize("seconds", [-86400 * 365, 86400 * 365])
def test_clocks_that_jump(hold, monkeypatch: pytest.MonkeyPatch, seconds: int):
    """The time of day of a holder, or of who comes second, decides nothing."""
    with hold("first") as first:
        monkeypatch.setattr("time.time", lambda: 1_700_000_000 + seconds)
        monkeypatch.setattr("time.monotonic", lambda: 1_000_000 + seconds)
        first.check()
        with pytest.raises(UpdateInProgress), hold("second"):
            pass


def test_a_store_that_is_away(hold, store: Store, times: Times):
    """A holder goes on for as long as nobody else can have it, and no longer; others get an error meanwhile."""
    with hold("first") as first:
        store.answers = False
        times.pass_by(LIFETIME.seconds - MARGIN.seconds)
        with pytest.raises(LeaseUnreachable):
            first.renew()
        first.check()
        with pytest.raises(LeaseUnreachable), hold("second"):
            pass
        times.pass_by(1)
        with pytest.raises(LeaseLost):
            first.check()


def test_answers_that_get_lost(hold, store: Store):
    """A request that was done, and whose repetition was refused, is known for one's own."""
    store.lost = 1
    with hold("first") as first:
        store.lost = 1
        first.renew()
        first.renew()
        first.check()
    assert holder_of(str(store.text))["free"] is True


def test_a_renewal_that_was_done_and_failed_keeps_no_other_waiting(hold, store: Store, monkeypatch):
    """The store went away with its answer, and is back at the end: the lease is released under the tag that it has now."""
    write = store.write

    def done_and_away(text: str, *, expected: str | None) -> str | None:
        write(text, expected=expected)
        raise LeaseUnreachable("away")

    with hold("first") as first:
        with monkeypatch.context() as patched:
            patched.setattr(store, "write", done_and_away)
            with pytest.raises(LeaseUnreachable):
                first.renew()
        first.check()
    with hold("second"):
        pass


def test_a_renewal_whose_answer_got_lost_is_not_counted_from_now(hold, store: Store, times: Times):
    """What is read back may have been written by an earlier request: the holder stands back as early as if it had not renewed."""
    with hold("first") as first:
        times.pass_by(LIFETIME.seconds - MARGIN.seconds)
        store.lost = 1
        first.renew()
        first.check()
        times.pass_by(1)
        with pytest.raises(LeaseLost):
            first.check()


def test_a_holder_is_known_by_its_token():
    """A lease that the same update took again is not the one that it held before."""
    first = Holder("u", 1)
    assert first.wrote(first.text(renewed=1))
    assert not first.wrote(first.with_token(2).text())
    assert not first.wrote(Holder("v", 1).text())


def test_an_object_that_was_removed(hold, store: Store):
    """Whoever takes it away ends the holder, at its next renewal."""
    with hold("first") as first:
        store.text = None
        first.renew()
        with pytest.raises(LeaseLost):
            first.check()


def test_what_can_not_be_read_is_held(hold, store: Store, times: Times):
    """Half a text names no holder; it is one until its time is over."""
    store.write('{"upd', expected=None)
    with pytest.raises(UpdateInProgress), hold("first"):
        pass
    times.pass_by(LIFETIME.seconds)
    with hold("first") as first:
        first.check()


def test_a_killed_holder_of_this_machine(hold, store: Store, tmp_path: Path):
    """Whoever has the lock that the last holder had on this machine knows that it is dead: nobody waits."""
    with update_lease(tmp_path, "first") as local:
        lock = lock_identity(local.path)
    died = hold("first", lock=lock)
    died.__enter__()
    with pytest.raises(UpdateInProgress), hold("elsewhere", lock=(lock[0], lock[1], lock[2] + 1)):
        pass
    with pytest.raises(UpdateInProgress), hold("elsewhere"):
        pass
    with update_lease(tmp_path, "second") as local, hold("second", lock=lock_identity(local.path)) as second:
        assert second.token == 2
    died.__exit__(None, None, None)
    assert holder_of(str(store.text))["update_id"] == "second"


def test_many_at_once(hold):
    """Of twenty that come at the same moment one has it."""
    together, done = threading.Barrier(20), threading.Event()

    def take(number: int) -> int:
        together.wait()
        try:
            with hold(f"{number}"):
                done.wait(20)
                return 1
        except UpdateInProgress:
            return 0

    with ThreadPoolExecutor(20) as pool:
        tasks = [pool.submit(take, number) for number in range(20)]
        refused = list(islice(as_completed(tasks, 20), 19))
        done.set()
        assert [task.result() for task in refused] == [0] * 19
        assert sum(task.result(20) for task in tasks) == 1


def test_a_long_wait_beside_a_holder_that_renews(hold, times: Times):
    """Whoever waits for longer than a lease lives sees each renewal, and takes nothing from a holder that is alive."""
    with hold("first") as first:
        times.meanwhile = first.renew
        with pytest.raises(UpdateInProgress), hold("second", wait=3 * LIFETIME):
            pass
        first.check()


@pytest.mark.parametrize("error", [LeaseUnreachable("away"), StoreRefused("denied")])
def test_a_renewal_that_fails_is_tried_again(
    hold, store: Store, monkeypatch: pytest.MonkeyPatch, error: HeadwaterError
):
    """Where the store did not answer once, or denied it, the next renewal may reach it."""
    renewed = threading.Event()
    monkeypatch.setattr(module, "RENEWAL", timedelta(seconds=0.01))
    with hold("first"):
        write, failures = store.write, [error]

        def once(text: str, *, expected: str | None) -> str | None:
            if failures:
                raise failures.pop()
            renewed.set()
            return write(text, expected=expected)

        monkeypatch.setattr(store, "write", once)
        assert renewed.wait(10)
