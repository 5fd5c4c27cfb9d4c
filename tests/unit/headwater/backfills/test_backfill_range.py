"""Ranges as they are typed: what they mean, and what is refused with which words."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from headwater.backfills.backfill_range import RangeKind, read_range
from headwater.backfills.conditions import InvalidRange


def test_times_are_utc_unless_they_say_otherwise():
    """One range, however it is spelled, has one key; the end is not part of it."""
    plain = read_range("event-time", "2026-01-01", "2026-02-01", "at")
    zoned = read_range("event-time", "2026-01-01T02:00:00+02:00", "2026-01-31T23:00:00-01:00", "AT")
    assert plain.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert plain.key == zoned.key
    assert str(plain) == "at from 2026-01-01 00:00:00Z to before 2026-02-01 00:00:00Z"


def test_the_zone_of_the_machine_does_not_count(monkeypatch):
    """A time without a zone is UTC also where clocks show another: two machines mean one range."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert read_range("event-time", "2026-01-01", "2026-02-01", "at").start == datetime(
            2026, 1, 1, tzinfo=UTC
        )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_offsets_are_the_same_in_any_spelling():
    """The order of topics and partitions, and blanks, make no other range."""
    one = read_range("offset", '{"a": {"0": 1, "1": 2}}', '{"a": {"1": 3, "0": 1}}', None)
    other = read_range("offset", '{"a":{"1":2,"0":1}}', '{"a":{"0":1,"1":3}}', None)
    assert one.key == other.key
    assert one.as_dict()["to"] == {"a": {"0": 1, "1": 3}}


def test_a_range_may_begin_at_the_first_message():
    """The first offset of a partition is 0."""
    assert read_range("offset", '{"a": {"0": 0}}', '{"a": {"0": 1}}', None).start == {"a": {"0": 0}}


def test_versions_include_both_ends():
    """One version is a range."""
    assert read_range("version", "3", "3", None).end == 3


def test_a_condition_is_a_range_without_ends():
    """It says itself which rows are meant; blanks inside its literals make another range."""
    chosen = read_range("where", None, None, None, " region = 'EU' ")
    assert (chosen.condition, str(chosen)) == ("region = 'EU'", "rows where region = 'EU'")
    assert chosen.as_dict() == {"kind": "where", "where": "region = 'EU'"}
    assert chosen.key == read_range("where", None, None, None, "region = 'EU'").key
    assert chosen.key != read_range("where", None, None, None, "region = 'E U'").key


@pytest.mark.parametrize(
    ("kind", "start", "column", "condition", "words"),
    [
        ("where", None, None, None, "needs the condition"),
        ("where", None, None, " ", "is empty"),
        ("where", "2026-01-01", None, "a = 1", "without ends"),
        ("where", None, "at", "a = 1", "without ends"),
        ("version", None, None, "a = 1", "without ends"),
    ],
)
def test_a_condition_stands_alone(kind, start, column, condition, words):
    """Ends, a column and another kind of range don't go with it."""
    with pytest.raises(InvalidRange, match=words) as caught:
        read_range(kind, start, None, column, condition)
    assert "--where" in caught.value.remedy


@pytest.mark.parametrize(
    ("kind", "start", "end", "column", "words"),
    [
        ("event-time", "2026-01-01", None, "at", "needs both ends"),
        ("event-time", "2026-01-02", "2026-01-01", "at", "empty"),
        ("event-time", "2026-01-01", "2026-01-01", "at", "empty"),
        ("event-time", "7d", "2026-01-01", "at", "not a time"),
        ("event-time", "0001-01-01T00:00:00+23:59", "2026-01-01", "at", "not a time"),
        ("event-time", "2026-01-01", "2026-01-02", None, "needs the column"),
        ("file-time", "2026-01-01", "2026-01-02", "at", "--column"),
        ("version", "-1", "2", None, "not a version"),
        ("version", "3", "2", None, "empty"),
        ("version", "\u0663", "4", None, "not a version"),
        ("offset", "3", "4", None, "not a map of offsets"),
        ("offset", '{"a": {"0": -2}}', '{"a": {"0": 4}}', None, "not a map of offsets"),
        ("offset", '{"a": {"0": true}}', '{"a": {"0": 4}}', None, "not a map of offsets"),
        ("offset", '{"a": {"0": 1}}', '{"a": {"1": 4}}', None, "other topics or partitions"),
        ("offset", '{"a": {"0": 5}}', '{"a": {"0": 4}}', None, "before it begins"),
        ("offset", '{"a": {"0": 5}}', '{"a": {"0": 5}}', None, "empty"),
        ("offset", "{}", "{}", None, "empty"),
    ],
)
def test_what_can_not_be_meant_is_refused(kind, start, end, column, words):
    """Each with what is wrong, and the form that works."""
    with pytest.raises(InvalidRange) as caught:
        read_range(kind, start, end, column)
    assert words in caught.value.what
    assert "--from" in caught.value.remedy
    assert RangeKind(kind)
