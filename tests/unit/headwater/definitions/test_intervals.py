"""How long a schedule leaves between two runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import TypeAdapter, ValidationError

from headwater.definitions.intervals import longest_gap, read_duration
from headwater.definitions.pipeline_spec import MaintenanceSpec
from headwater.definitions.spec_model import Duration


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


@pytest.mark.parametrize(
    "text",
    ["1 month", "3 months", "1 mon", "5 microseconds", "1 decade", "5 dogs", "1 moment", "1 year", "5"],
)
def test_a_unit_is_a_whole_word(text: str):
    """What begins like a unit is none: vacuum must not keep files for a minute where a month was meant."""
    assert read_duration(text) is None
    with pytest.raises(ValidationError, match="say days"):
        MaintenanceSpec(retention=text)


def test_all_units():
    """Each unit has its length, in singular, plural and short, in any letter case."""
    assert read_duration("2 weeks") == timedelta(weeks=2)
    assert read_duration("1 Day") == read_duration("24hrs") == read_duration("1440 MIN") == timedelta(days=1)
    assert read_duration("7d") == read_duration("1 week") == timedelta(days=7)


@pytest.mark.parametrize("value", [-3, -0.5, True, float("nan"), "-PT5S", "-00:00:05", "-5 days"])
def test_no_length_of_time(value: object):
    """A length is not negative and no truth value: `keep: -3` would remove every copy that there is."""
    with pytest.raises(ValidationError, match="length of time"):
        MaintenanceSpec(keep=value)


def test_other_spellings_of_a_length():
    """A number means seconds; ISO 8601 and a clock's form are read as before."""
    read = TypeAdapter(Duration).validate_python
    assert read(30) == read("PT30S") == read("00:00:30") == timedelta(seconds=30)
    assert read("1 day, 02:00:00") == timedelta(hours=26)
    assert read(0) == timedelta(0)
