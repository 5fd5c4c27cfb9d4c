"""A reader's own position."""

from __future__ import annotations

import pytest

from headwater.change_feed import consumer
from headwater.change_feed.consumer import ChangeConsumer
from headwater.errors import ChangeFeedBroken, UpdateInProgress, UsageError
from headwater.storage.walking import remove_tree


@pytest.fixture
def reader(orders, home):
    """Make a reader, as each run of a task does."""
    return lambda start="snapshot", name="shop.orders": ChangeConsumer(
        home / "reader.json", name, orders.path, start
    )


def bounds(changes):
    return changes and (changes.start_version, changes.end_version, changes.snapshot)


def test_every_commit_is_read_once(orders, reader):
    """First all that the table holds, then what comes; nothing twice."""
    assert reader().next_range() is None
    orders.append([1])
    orders.append([2])
    first = reader().next_range()
    assert bounds(first) == (0, 1, True)
    reader().done(first)
    assert reader().next_range() is None
    orders.append([3])
    orders.append([4])
    second = reader().next_range()
    assert bounds(second) == (2, 3, False)
    reader().done(second)
    assert reader().next_range() is None


def test_work_that_did_not_end_is_given_again_with_the_same_bounds(orders, reader):
    """Though the table has moved on: what is keyed by the bounds has no effect twice."""
    orders.append([1])
    begun = reader().next_range()
    orders.append([2])
    assert reader().has_begun()
    assert reader().next_range() == begun
    reader().done(begun)
    assert not reader().has_begun()
    assert bounds(reader().next_range()) == (1, 1, False)


def test_a_reader_may_begin_later(orders, reader, home):
    """With the latest, the first run only notes where the table stands; or at a version."""
    orders.append([1])
    orders.append([2])
    assert reader("latest").next_range() is None
    orders.append([3])
    assert bounds(reader("latest").next_range()) == (2, 2, False)
    (home / "reader.json").unlink()
    assert bounds(reader(1).next_range()) == (1, 2, False)


def test_moved_files_move_the_position_only(orders, reader):
    """Nothing is given for them, and nothing of them is left."""
    orders.append([1])
    orders.append([2])
    reader().done(reader().next_range())
    orders.delta.optimize.compact()
    assert reader().next_range() is None
    orders.append([3])
    assert bounds(reader().next_range()) == (3, 3, False)


def test_two_at_once_are_kept_apart(reader):
    """A second task waits, then fails as one that may be tried again."""
    with reader().alone(), pytest.raises(UpdateInProgress) as refused, reader().alone():
        pass
    assert refused.value.transient
    with reader().alone():
        pass


def test_a_position_of_another_table_is_refused(orders, reader):
    """Two readers of one name would jump over each other's rows."""
    orders.append([1])
    reader().next_range()
    with pytest.raises(UsageError, match="not of shop"):
        reader(name="shop.clicks").next_range()


def test_a_broken_feed_names_the_file_to_remove(orders, reader, home):
    """Without it the reader starts from the beginning."""
    orders.append([1])
    reader().done(reader().next_range())
    remove_tree(orders.path)
    orders.append([2])
    orders.append([3])
    with pytest.raises(ChangeFeedBroken, match="remove the file of the position") as broken:
        reader().next_range()
    assert broken.value.where == str(home / "reader.json")


@pytest.mark.parametrize(
    "text", ["", '{"table": "shop.or', "[1]", '{"table": "shop.orders", "position": {"version": 3}}']
)
def test_a_damaged_position_is_named(orders, reader, home, text):
    """A task neither begins anew by itself, which would double its work, nor fails with words about JSON alone."""
    orders.append([1])
    reader().done(reader().next_range())
    (home / "reader.json").write_text(text)
    for look in (reader().has_begun, reader().next_range):
        with pytest.raises(
            ChangeFeedBroken, match=r"(?s)can't be read: .*backup.*remove the file of the position"
        ) as broken:
            look()
        assert broken.value.where == str(home / "reader.json")
    assert (home / "reader.json").read_text() == text


@pytest.mark.parametrize("start", ["latest", 0])
def test_a_table_that_is_made_between_two_looks(orders, reader, home, monkeypatch, start):
    """A reader that does not begin with what the table holds is not given it because there was no table a moment before."""
    orders.append([1])
    monkeypatch.setattr(consumer, "table_head", lambda _: None)
    assert reader(start).next_range() is None
    assert not (home / "reader.json").exists()
