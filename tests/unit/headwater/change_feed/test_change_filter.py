"""Which changes wake a reader, at the edges."""

from __future__ import annotations

import pytest

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.counts import ChangeCounts


def changes(*, changes_data: bool = True, **counts: int | None) -> ChangeRange:
    """A range with so many rows of each type."""
    return ChangeRange("shop.orders", "id", 1, 2, counts=ChangeCounts(**counts), changes_data=changes_data)


def test_as_many_rows_as_are_wanted_are_enough():
    """All types that count are added up; those that do not count are left out."""
    three = ChangeFilter.checked(min_rows=3)
    assert three.lets_pass(changes(insert=1, update=1, delete=1))
    assert not three.lets_pass(changes(insert=2))
    inserts = ChangeFilter.checked(types=["insert"], min_rows=3)
    assert inserts.lets_pass(changes(insert=3))
    assert not inserts.lets_pass(changes(insert=2, delete=9))


def test_what_is_not_known_is_enough():
    """No change may be missed: a log that does not say how many rows wakes a reader."""
    assert ChangeFilter.checked(min_rows=1000).lets_pass(changes(insert=None))
    assert ChangeFilter.checked(types=["delete"], min_rows=1000).lets_pass(changes(insert=3, delete=None))


def test_commits_that_change_no_rows_wake_nobody():
    """Whatever their counts say or do not say."""
    assert not ChangeFilter.checked().lets_pass(changes(changes_data=False, insert=9))
    assert not ChangeFilter.checked().lets_pass(changes(changes_data=False, insert=None))


@pytest.mark.parametrize("quiet", [0, 0.5])
def test_a_filter_may_wait_for_no_quiet(quiet: float):
    """Zero is a time; names that are there twice count once, in their order."""
    checked = ChangeFilter.checked(["delete", "insert", "delete"], ["b", "a", "b"], 1, quiet)
    assert (checked.types, checked.columns) == (("delete", "insert"), ("b", "a"))
    assert (checked.min_rows, checked.quiet_seconds) == (1, quiet)
