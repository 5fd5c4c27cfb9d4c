"""The rows of a range."""

from __future__ import annotations

from collections import Counter

import pytest

from headwater.change_feed.change_range import FeedPosition, range_after
from headwater.change_feed.reading import arrow_table, spark_read
from headwater.errors import ChangeFeedBroken

NAME = "shop.orders"


def wanted(orders, after=None):
    position = None
    if after is not None:
        position = FeedPosition(str(orders.delta.metadata().id), after)
    return range_after(NAME, orders.path, position)


def kinds(rows):
    return Counter(rows["_change_type"].to_pylist())


def test_a_snapshot_is_all_rows_as_inserts(orders):
    """Of that version, though the table has moved on."""
    orders.append(range(4))
    changes = wanted(orders)
    orders.append(range(4, 9))
    rows = arrow_table(orders.path, changes)
    assert kinds(rows) == {"insert": 4}
    assert set(rows["_commit_version"].to_pylist()) == {0}
    assert sorted(rows["id"].to_pylist()) == [0, 1, 2, 3]


def test_a_range_has_the_rows_that_its_counts_tell(orders):
    """Images before and after an update are both there; optimize in between adds nothing."""
    orders.append(range(4))
    orders.append(range(4, 6))
    orders.delta.update(updates={"amount": "7"}, predicate="id < 2")
    orders.delta.optimize.compact()
    orders.delta.delete("id = 5")
    changes = wanted(orders, 0)
    rows = kinds(arrow_table(orders.path, changes))
    assert rows == {"insert": 2, "update_preimage": 2, "update_postimage": 2, "delete": 1}
    assert changes.counts.as_dict() == {"insert": 2, "update": 2, "delete": 1}


def test_a_table_without_a_feed_can_be_read_while_rows_are_only_added(orders_without_feed):
    """Optimized files in between are not taken for new rows; once rows are changed, it is refused."""
    orders = orders_without_feed
    orders.append(range(4))
    orders.append(range(4, 6))
    orders.delta.optimize.compact()
    orders.append([6])
    rows = arrow_table(orders.path, wanted(orders, 0))
    assert sorted(rows["id"].to_pylist()) == [4, 5, 6]
    orders.delta.update(updates={"amount": "7"}, predicate="id < 2")
    for read in (arrow_table, spark_read):
        with pytest.raises(ChangeFeedBroken, match="keeps no change feed"):
            read(orders.path, wanted(orders, 0))


def test_what_spark_is_asked(orders):
    """Bounds of a feed, or a version; all plain values."""
    orders.append(range(4))
    assert spark_read(orders.path, wanted(orders)).options == {"versionAsOf": "0"}
    orders.append(range(4))
    read = spark_read(orders.path, wanted(orders, 0))
    assert read.options == {"readChangeFeed": "true", "startingVersion": "1", "endingVersion": "1"}
