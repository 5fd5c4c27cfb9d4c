"""Ranges of versions."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from tests.delta_vectors import enable_vectors

from headwater.change_feed import change_range
from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after, the_same_range
from headwater.change_feed.counts import ChangeCounts
from headwater.errors import ChangeFeedBroken

NAME = "shop.orders"


def test_a_range_covers_all_commits_since_the_position(orders):
    """Counts are sums; both ends are versions that came after the position."""
    orders.append(range(4))
    first = range_after(NAME, orders.path, None)
    assert (first.snapshot, first.end_version, first.counts) == (True, 0, ChangeCounts(insert=4))
    orders.append(range(4, 6))
    orders.delta.delete("id < 3")
    changes = range_after(NAME, orders.path, first.position)
    assert (changes.start_version, changes.end_version) == (1, 2)
    assert changes.counts == ChangeCounts(insert=2, delete=3)
    assert range_after(NAME, orders.path, changes.position) is None


def test_a_range_survives_json(orders):
    """It is stored in positions and events."""
    orders.append(range(4))
    changes = range_after(NAME, orders.path, None)
    assert ChangeRange.of_dict(json.loads(json.dumps(changes.as_dict()))) == changes


def test_there_is_no_range_without_a_table(orders):
    """Before the table is made there is nothing to tell."""
    assert range_after(NAME, orders.path, None) is None


def test_a_table_that_was_made_anew_breaks_the_reader(orders):
    """Its versions mean other rows: going on would lose or double some."""
    orders.append([1])
    orders.append([2])
    changes = range_after(NAME, orders.path, None)
    shutil.rmtree(orders.path)
    orders.append([3])
    for act in (
        lambda: range_after(NAME, orders.path, changes.position),
        lambda: the_same_range(orders.path, changes),
    ):
        with pytest.raises(ChangeFeedBroken, match="recreated"):
            act()


def test_commits_that_are_gone_break_the_reader(orders):
    """A log that was cleaned past the position can't tell what changed."""
    orders.append([1])
    position = range_after(NAME, orders.path, None).position
    orders.append([2])
    orders.append([3])
    orders.delta.create_checkpoint()
    (orders.path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(ChangeFeedBroken, match=r"Version 1 of shop\.orders"):
        range_after(NAME, orders.path, FeedPosition(position.table_id, 0))


def test_rows_of_a_table_whose_rows_may_be_marked(orders):
    """They are counted: statistics still have those that vectors have deleted."""
    orders.append([1, 2, 3])
    enable_vectors(orders.path)
    assert change_range._rows(orders.path, 0, []) == 3


def test_a_range_is_dealt_with_again_as_it_was(orders):
    """With the bounds that it had, where the table stands at its end or has gone on; a table that is gone or went back breaks it."""
    orders.append([1])
    orders.append([2])
    begun = range_after(NAME, orders.path, None)
    assert the_same_range(orders.path, begun) == begun
    orders.append([3])
    assert the_same_range(orders.path, begun) == begun
    for broken in (replace(begun, end_version=3), replace(begun, table_id="another")):
        with pytest.raises(ChangeFeedBroken, match="is gone, or was recreated"):
            the_same_range(orders.path, broken)
    shutil.rmtree(orders.path)
    with pytest.raises(ChangeFeedBroken, match="is gone, or was recreated"):
        the_same_range(orders.path, begun)
