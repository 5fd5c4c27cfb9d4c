"""An answer that got lost, or a store that went away in the middle: what was done is known as ours, and the same call again ends it."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pyarrow as pa
import pytest
from tests.failing_store import FailingStore, Fails, failing_store
from tests.object_stores import leading_to

from headwater.change_feed.change_range import range_after
from headwater.change_feed.reading import arrow_table
from headwater.errors import ChangeFeedBroken, HeadwaterError, LeaseUnreachable
from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.leases.storage_lease import storage_lease
from headwater.quarantine.table import _query
from headwater.storage import retries
from headwater.storage.access import ObjectStore
from headwater.storage.atomic import refuse_without_conditions
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.delta_tables import append
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


@pytest.fixture
def impatient(monkeypatch):
    """delta-rs gives up soon, too."""
    options = ObjectStore.delta_options.fget  # type: ignore[attr-defined]
    soon = {"max_retries": "1", "retry_timeout": "1s", "backoff_config.init_backoff": "1ms"}
    monkeypatch.setattr(ObjectStore, "delta_options", property(lambda store: {**options(store), **soon}))


def _changes(table):
    changes = range_after("t", table, None)
    assert changes is not None
    return arrow_table(table, changes).num_rows


def _outcome(look, table):
    try:
        return look(table)
    except HeadwaterError as error:
        return error


def _held(table):
    return len(_query(table, "select * from q"))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("look", [_changes, _held])
def test_a_store_that_is_away_is_no_damage(failing, place, look):
    """Whichever request of delta-rs it is: that passes, and nobody is told that files are gone or a position can't go on."""
    for number in range(2):
        append(place, pa.table({"id": [number]}), mode="append")
    failing.plan()
    assert look(place) == 2
    requests = failing.plan()
    for at in range(requests):
        failing.plan(Fails.FROM_THEN_ON, at)
        seen = _outcome(look, place)
        # Some requests delta-rs can do without.
        assert seen == 2 or seen.transient, seen
        assert "\x1b" not in str(seen)
    assert requests > 3


@pytest.mark.usefixtures("impatient")
def test_a_file_that_is_gone_is_damage(place):
    """The store answers: what is missing is the table's matter, and does not pass."""
    append(place, pa.table({"id": [1]}))
    (file,) = place.glob("*.parquet")
    file.unlink()
    with pytest.raises(ChangeFeedBroken):
        _changes(place)


@pytest.mark.parametrize("at", range(6))
def test_a_store_that_honours_conditions_is_not_refused(failing, place, at):
    """Whichever of the probe's answers gets lost: the client tries again and meets its own object."""
    failing.plan(Fails.ONCE_AFTER, at)
    refuse_without_conditions(place)
    assert failing.plan() > 3


@pytest.mark.parametrize("fails", [Fails.FROM_THEN_ON, Fails.DONE_THEN_ALL], ids=lambda fails: fails.name)
def test_nothing_of_a_probe_stays(failing, place, fails):
    """Whichever request of the first start the store goes away at: the next one on this machine takes away what is left."""
    failing.keep("empty")
    for at in itertools.count():
        failing.put_back("empty")
        failing.plan(fails, at)
        away = False
        try:
            with storage_lease(place, "first"):
                pass
        except (LeaseUnreachable, StoreUnreachable):
            away = True
        failing.plan()
        with storage_lease(place, "second"):
            pass
        assert [name for name in place.listed() if name.startswith(".probe")] == []
        if not away:
            break
    assert at > 5


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
