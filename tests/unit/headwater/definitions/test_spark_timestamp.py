"""A text in an option names the moment that Spark takes it for."""

from __future__ import annotations

import pytest

from headwater.definitions.spark_timestamp import instant_of


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026", "UTC", "2026-01-01T00:00:00+00:00"),
        ("2026-03", "UTC", "2026-03-01T00:00:00+00:00"),
        ("2026-1-5", "UTC", "2026-01-05T00:00:00+00:00"),
        (" 2026-01-31T08:05:09 ", "UTC", "2026-01-31T08:05:09+00:00"),
        ("2026-01-31 08:05", "Europe/Berlin", "2026-01-31T07:05:00+00:00"),
        ("2026-07-31 08:05", "Europe/Berlin", "2026-07-31T06:05:00+00:00"),
        ("2026-01-31 08:00:00.5", "+02:00", "2026-01-31T06:00:00.500000+00:00"),
        ("2026-01-31 08:00:00.123456789", "UTC", "2026-01-31T08:00:00.123456+00:00"),
        ("2026-01-31 08:00:00.000000 UTC+0", "Asia/Tokyo", "2026-01-31T08:00:00+00:00"),
        ("2026-01-31T08:00:00Z", "Asia/Tokyo", "2026-01-31T08:00:00+00:00"),
        ("2026-01-31T08:00:00+01:00", "UTC", "2026-01-31T07:00:00+00:00"),
        ("2026-01-31T08:00:00-0130", "UTC", "2026-01-31T09:30:00+00:00"),
        ("2026-01-31 08:00:00 GMT+1", "UTC", "2026-01-31T07:00:00+00:00"),
        ("2026-01-31 08:00:00 America/Los_Angeles", "UTC", "2026-01-31T16:00:00+00:00"),
    ],
)
def test_forms(text: str, zone: str, moment: str):
    """Dates, times with and without parts of seconds, and a zone by its offset or its name; else that of the session."""
    named = instant_of(text, zone)
    assert named is not None
    assert named.isoformat() == moment


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "01/02/2026", "2026-13-01", "2026-01-31 25:00", "2026-01-31 08:00 Mars/Olympus", "2026-01-31T08:00:00 +99:00"],
)  # fmt: skip
def test_what_is_no_moment(text: str):
    """A text that is none, a month or an hour that no calendar has, a zone that nobody knows."""
    assert instant_of(text, "UTC") is None
