"""When unread data is worth a run, at the edges of each limit."""

from __future__ import annotations

import pytest

from headwater.arrivals.arrival_rule import ArrivalRule
from headwater.arrivals.unread import Unread, UnreadSource
from headwater.errors import UsageError


def there(amount, measure="files"):
    """Something unread of one source."""
    return Unread((UnreadSource("bronze", "landing", measure, amount, "mark"),))


def test_data_may_wait_exactly_as_long_as_it_has_to_be_quiet():
    """A longest wait that equals the quiet time is taken, and a shorter one is refused."""
    assert ArrivalRule.checked(quiet_seconds=60, wait_seconds=60).wait_seconds == 60
    with pytest.raises(UsageError):
        ArrivalRule.checked(quiet_seconds=60, wait_seconds=59)


def test_the_longest_wait_is_over_at_its_last_second():
    """Data that has waited for exactly the longest time is read, however few and busy."""
    rule = ArrivalRule.checked(quiet_seconds=60, files=10, wait_seconds=600)
    assert not rule.is_met(there(1), quiet=0, waited=599)
    assert rule.is_met(there(1), quiet=0, waited=600)


def test_what_cannot_be_counted_is_enough():
    """Files, messages or commits of an unknown number begin a run, whatever least number is asked for."""
    rule = ArrivalRule.checked(files=10, records=10, versions=10)
    for measure in ("files", "records", "versions"):
        assert rule.is_met(there(None, measure), quiet=0, waited=0)
        assert not rule.is_met(there(9, measure), quiet=0, waited=0)
        assert rule.is_met(there(10, measure), quiet=0, waited=0)


def test_data_that_may_not_wait_at_all():
    """A longest wait of 0 seconds is one, and not none: whatever has come is read at once."""
    assert ArrivalRule.checked(files=10, wait_seconds=0).is_met(there(1), quiet=0, waited=0)
    assert not ArrivalRule.checked(files=10).is_met(there(1), quiet=0, waited=0)
