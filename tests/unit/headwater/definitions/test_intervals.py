"""How long a schedule leaves between two runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.definitions.intervals import longest_gap, read_duration


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("*/5 * * * *", timedelta(minutes=5)),
        ("@daily", timedelta(days=1)),
        ("0 6 * * 1-5", timedelta(days=3)),
        ("0 0 1 * *", timedelta(days=31)),
        ("0 8,20 * * *", timedelta(hours=12)),
        ("@once", None),
        ("whenever", None),
    ],
)
def test_longest_gap(schedule, gap):
    """The longest gap counts: a weekend, a long month; what has no times has no gap."""
    assert longest_gap(schedule) == gap


def test_milliseconds_are_no_minutes():
    """The short spelling begins with the letter of minutes, and means a thousandth of a second."""
    for text in ("500 ms", "500ms", "500 milliseconds", "0.5 s"):
        assert read_duration(text) == timedelta(milliseconds=500), text
    assert read_duration("5 m") == read_duration("5 mins") == timedelta(minutes=5)
