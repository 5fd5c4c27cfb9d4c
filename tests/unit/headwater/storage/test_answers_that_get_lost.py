"""An answer that got lost, or a store that went away in the middle: what was done is known as ours, and the same call again ends it."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from tests.failing_store import FailingStore, Fails, failing_store
from tests.object_stores import leading_to

from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.storage import retries
from headwater.storage.atomic import refuse_without_conditions
from headwater.storage.retries import Tries

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def failing():
    """A server that fails at chosen requests."""
    with failing_store() as server, leading_to(server):
        server.make_bucket("places")
        yield server


@pytest.fixture
def place(failing: FailingStore, monkeypatch, tmp_path):
    """A folder of its own, of a client that gives up soon."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    pauses = {"first_pause": timedelta(milliseconds=1), "longest_pause": timedelta(milliseconds=2)}
    for name in ("LOOKS", "LEASES"):
        monkeypatch.setattr(retries, name, Tries(1, timedelta(seconds=1), **pauses))
    yield failing.place("places", f"lost-{next(_NUMBERS)}")
    failing.plan()


@pytest.mark.parametrize("at", range(6))
def test_a_store_that_honours_conditions_is_not_refused(failing, place, at):
    """Whichever of the probe's answers gets lost: the client tries again and meets its own object."""
    failing.plan(Fails.ONCE_AFTER, at)
    refuse_without_conditions(place)
    assert failing.plan() > 3


@pytest.mark.parametrize("others", [False, True], ids=["alone", "another writes meanwhile"])
@pytest.mark.parametrize("fails", [Fails.FROM_THEN_ON, Fails.DONE_THEN_ALL], ids=lambda fails: fails.name)
@pytest.mark.parametrize("first", [False, True], ids=["a log", "no log yet"])
def test_no_event_is_there_twice_or_lost(failing, place, fails, others, first):
    """Whatever request the store goes away at, and whether it had the commit: each event is in the log once when it is back."""
    if not first:
        with EventLogWriter(place, "orders", "orders", "u0") as before:
            before.emit("user_action", "before")
    failing.keep("before")
    for at in itertools.count():
        failing.put_back("before")
        with EventLogWriter(place, "orders", "orders", "u", flush_seconds=1e6) as log:
            log.emit("user_action", "one")
            failing.plan(fails, at)
            try:
                log.flush()
                away = False
            except EventLogNotWritten:
                away = True
            failing.plan()
            if others:
                with EventLogWriter(place, "orders", "orders", "v") as other:
                    other.emit("user_action", "of another")
            log.emit("user_action", "two")
        seen = [record["message"] for record in events(place)]
        assert sorted(seen) == sorted(
            ["one", "two", *(["before"] if not first else []), *(["of another"] if others else [])]
        )
        assert seen.index("one") < seen.index("two")
        if not away:
            break
    assert at > 1
