"""Readers of a table's changes whose table and positions lie on S3."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from tests.unit.headwater.change_feed import test_killed_between_steps as killed
from tests.unit.headwater.change_feed.conftest import orders
from tests.unit.headwater.change_feed.test_consumer import *  # noqa: F403
from tests.unit.headwater.change_feed.test_consumer import bounds, reader
from tests.unit.headwater.storage.test_requests import cache

from headwater.errors import LeaseLost, UpdateInProgress
from headwater.leases import store_lease

__all__ = ["cache", "orders", "reader"]
_NUMBERS = itertools.count()


@pytest.fixture
def home(s3):
    """A folder of a bucket."""
    return s3.place("places", f"read-{next(_NUMBERS)}")


@pytest.mark.parametrize("step", ["before the position moves"])
def test_killed_before_the_position_moves(orders, home, tmp_path, step):
    """The range is given again, with the same bounds, and nothing else is."""
    killed.test_every_commit_is_worked_on_and_only_a_repetition_has_the_same_bounds(
        orders, home, tmp_path, step
    )


def test_a_reader_that_stood_still_moves_nothing(orders, reader):
    """Another task has taken its range over, dealt with it and begun the next one: the first one's end changes nothing."""
    orders.append([1])
    first = reader().next_range()
    other = reader()
    other.done(other.next_range())
    orders.append([2])
    second = other.next_range()
    reader().done(first)
    assert other.next_range() == second
    other.done(second)
    assert bounds(second) == (1, 1, False)
    assert reader().next_range() is None


def test_what_another_one_has_reset_is_not_moved(orders, home, reader):
    """Its position was removed meanwhile: to write it again would pass over what the other one is to read."""
    orders.append([1])
    first = reader().next_range()
    (home / "reader.json").unlink()
    with pytest.raises(LeaseLost, match="moved the position") as lost:
        reader().done(first)
    assert lost.value.transient
    assert bounds(reader().next_range()) == (0, 0, True)


def test_of_two_that_begin_at_once_one_has_the_range(orders, home, reader, monkeypatch):
    """Both have read that there is no position: the second write is refused by the store."""
    orders.append([1])
    slow, quick = reader(), reader()
    read = type(slow)._read

    def meanwhile(consumer):
        seen = read(consumer)
        if consumer is slow:
            monkeypatch.setattr(type(slow), "_read", read)
            quick.next_range()
            orders.append([2])
        return seen

    monkeypatch.setattr(type(slow), "_read", meanwhile)
    with pytest.raises(LeaseLost):
        slow.next_range()
    assert bounds(reader().next_range()) == (0, 0, True)


def test_a_lost_answer_is_no_other_reader(orders, home, reader, monkeypatch):
    """The store has written the position, its answer got lost, and the second try is refused: the text says that it is ours."""
    from headwater.storage import atomic

    orders.append([1])
    first = reader().next_range()
    change = atomic.change_text

    def unheard(place, text, tag):
        assert change(place, text, tag) is not None
        return change(place, text, tag)

    monkeypatch.setattr(atomic, "change_text", unheard)
    reader().done(first)
    assert not reader().has_begun()
    assert reader().next_range() is None


def test_another_machine_waits_for_a_dead_reader(orders, home, reader, monkeypatch):
    """Without the lock of the machine on which it died: its lease is free a minute after its last renewal."""
    from headwater.leases.conditional_store import StoredObject
    from headwater.leases.holder import Holder

    lease = home / "reader.lease"
    StoredObject(lease).write(Holder("dead", 4, host="elsewhere", lock=("boot", 1, 2)).text(), expected=None)
    with pytest.raises(UpdateInProgress, match="at work on the changes"), reader().alone():
        pass
    monkeypatch.setattr(store_lease, "LIFETIME", timedelta(0))
    monkeypatch.setattr(store_lease, "WATCHED", timedelta(0))
    with reader().alone():
        pass


def test_a_look_takes_few_requests(orders, home, reader, s3):
    """Twelve for a task that finds nothing new, its lease included."""
    for ids in range(12):
        orders.append([ids])
    with reader().alone():
        reader().done(reader().next_range())
    with s3.counted() as requests, reader().alone():
        assert reader().next_range() is None
    assert requests.total() <= 12, requests
