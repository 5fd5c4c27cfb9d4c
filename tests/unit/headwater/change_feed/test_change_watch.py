"""What a watch tells, and when."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.counted_work import counted_work

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_watch import ChangeWatch
from headwater.errors import InvalidName, UsageError


@pytest.fixture
def watch(orders, tmp_path):
    """Make a watch, as a process does that starts; all have the same memory."""

    def start(now=time.time, **wanted):
        return ChangeWatch(
            "shop.orders", orders.path, ChangeFilter.checked(**wanted), tmp_path / "watch.json", now
        )

    return start


def bounds(changes):
    return changes and (changes.start_version, changes.end_version)


def test_news_come_again_until_they_have_arrived(orders, watch):
    """A watch that ends between telling and the arrival tells the same again, with what came since."""
    assert watch().look() is None
    orders.append([1])
    first = watch()
    assert bounds(first.look()) == (0, 0)
    assert bounds(watch().look()) == (0, 0)
    first.acknowledge(first.look())
    assert first.look() is None
    assert watch().look() is None
    orders.append([2])
    orders.append([3])
    assert bounds(watch().look()) == (1, 2)


def test_moved_files_wake_nobody_and_are_not_read_again(orders, watch, monkeypatch):
    """After optimize and vacuum the watch stands behind them, also after a restart."""
    orders.append([1])
    orders.append([2])
    watching = watch()
    watching.acknowledge(watching.look())
    orders.delta.optimize.compact()
    orders.delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert watching.look() is None
    monkeypatch.setattr("headwater.change_feed.change_watch.range_after", None)
    assert watch().look() is None


def test_only_the_selected_types_wake(orders, watch):
    """Deletes are waited for: inserts and updates pass by, and are part of no later range."""
    orders.append(range(4))
    watching = watch(types=["delete"])
    assert watching.look() is None
    orders.append([9])
    assert watching.look() is None
    orders.delta.delete("id = 9")
    changes = watching.look()
    assert (bounds(changes), changes.counts.delete) == ((2, 2), 1)


def test_rows_add_up_to_the_minimum(orders, watch):
    """Two commits of three rows make five, over a restart in between; the range has both."""
    watching = watch(min_rows=5)
    orders.append(range(2))
    assert watching.look() is None
    orders.append(range(2, 4))
    assert watch(min_rows=5).look() is None
    orders.append([5])
    changes = watch(min_rows=5).look()
    assert (bounds(changes), changes.counts.insert) == ((0, 2), 5)


def test_the_table_has_to_be_quiet(orders, watch):
    """While commits come in, nothing is emitted; then all of it at once."""
    clock = [time.time()]
    watching = watch(now=lambda: clock[0], quiet_seconds=60)
    orders.append([1])
    assert watching.look() is None
    clock[0] += 50
    orders.append([2])
    assert watching.look() is None
    clock[0] += 70
    assert bounds(watching.look()) == (0, 1)


@pytest.mark.parametrize(("age", "quiet"), [(59.9, False), (60.0, True), (60.1, True)])
def test_how_long_a_table_has_to_be_quiet(watch, age: float, quiet: bool):
    """As long as that, from the newest commit on."""
    watching = watch(now=lambda: 1_000.0 + age, quiet_seconds=60)
    newest = datetime.fromtimestamp(1_000.0, UTC).isoformat()
    assert watching._is_quiet(SimpleNamespace(committed_at=newest)) is quiet
    assert watching._is_quiet(SimpleNamespace(committed_at=None))


def test_only_updates_of_the_selected_columns_wake(orders, watch):
    """A note is not an amount."""
    orders.append(range(4))
    watching = watch(columns=["note"], types=["update"])
    watching.look()
    orders.delta.update(updates={"note": "'x'"}, predicate="id = 1")
    assert watching.look().counts.update == 1


def test_a_recreated_table_is_reported_as_a_whole(orders, watch):
    """Its readers have to be woken, to say that they can't go on."""
    orders.append([1])
    orders.append([2])
    watching = watch()
    watching.acknowledge(watching.look())
    shutil.rmtree(orders.path)
    orders.append([3])
    changes = watching.look()
    assert (bounds(changes), changes.snapshot) == ((0, 0), True)
    watching.acknowledge(changes)
    assert watch().look() is None


def test_a_recreated_table_that_has_the_same_version_is_reported(orders, watch):
    """By a watch that was there, and by one that starts later; once."""
    orders.append([1])
    watching = watch()
    watching.acknowledge(watching.look())
    assert watching.look() is None
    shutil.rmtree(orders.path)
    orders.append([3])
    changes = watch().look()
    assert (bounds(changes), changes.snapshot) == ((0, 0), True)
    assert watching.look() == changes
    watching.acknowledge(changes)
    assert watching.look() is None
    assert watch().look() is None


def test_a_damaged_memory_wakes_once_more(orders, watch, tmp_path):
    """Readers keep positions of their own, so that costs a run; a watch that stands still for ever would cost the changes."""
    orders.append([1])
    first = watch()
    first.acknowledge(first.look())
    (tmp_path / "watch.json").write_text('{"table": "shop.or')
    second = watch()
    assert bounds(second.look()) == (0, 0)
    second.acknowledge(second.look())
    assert watch().look() is None


def test_a_look_at_fifty_tables_opens_little(orders, tmp_path):
    """Also where each has a new commit; where nothing is new, each log is only listed."""
    orders.append(range(10))
    watches = []
    for number in range(50):
        copy = tmp_path / f"copy_{number}"
        shutil.copytree(orders.path, copy)
        watches.append(ChangeWatch(f"shop.copy_{number}", copy, ChangeFilter(), tmp_path / f"{number}.json"))
    looks = []
    with_news = counted_work(lambda: looks.append([watch.look() for watch in watches]))
    for watch, news in zip(watches, looks[-1], strict=True):
        watch.acknowledge(news)
    without = counted_work(lambda: looks.append([watch.look() for watch in watches]))
    print(with_news, without)
    assert looks[-1] == [None] * 50
    assert (with_news.opened, with_news.listed) == (50, 50)
    assert (without.opened, without.listed) == (0, 50)
    assert max(with_news.calls, without.calls) < 20_000


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"types": ["upsert"]}, UsageError),
        ({"columns": ["a b"]}, InvalidName),
        ({"min_rows": 0}, UsageError),
        ({"quiet_seconds": -1}, UsageError),
    ],
)
def test_a_filter_without_meaning_is_refused(values, error):
    """A wish that can't be honoured is not ignored."""
    with pytest.raises(error):
        ChangeFilter.checked(**values)
