"""What texts and JSON values mean as the type of a parameter."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.definitions.parameter_value import ParameterType, kind_of, read_value, value_text

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)
FIRST, LAST = (
    datetime(2, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    datetime(9998, 1, 1, tzinfo=UTC).replace(tzinfo=None),
)
VALUES = st.one_of(
    st.tuples(st.just(ParameterType.STRING), _TEXT),
    st.tuples(st.just(ParameterType.INTEGER), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(ParameterType.NUMBER), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(ParameterType.BOOLEAN), st.booleans()),
    st.tuples(st.just(ParameterType.DATE), st.dates()),
    st.tuples(
        st.just(ParameterType.TIMESTAMP),
        st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))]), min_value=FIRST, max_value=LAST),
    ),
)  # fmt: skip


@given(VALUES)
def test_a_value_survives_its_text(pair):
    """Whatever the type, the text that a driver is given means the value that the form had."""
    kind, value = pair
    assert read_value(kind, value) == value
    assert read_value(kind, value_text(value)) == value
    assert kind_of(value) is kind


@given(
    st.sampled_from(ParameterType), st.one_of(st.text(max_size=40), st.from_regex(r"[0-9eE+.:TZ -]{0,30}"))
)
def test_any_text_is_a_value_or_refused(kind, text):
    """No text makes anything but a value of the type or a ValueError."""
    try:
        value = read_value(kind, text)
    except ValueError:
        return
    assert read_value(kind, value_text(value)) == value


@given(
    st.sampled_from(ParameterType),
    st.recursive(st.none() | st.booleans() | st.floats() | st.integers(), st.lists),
)
def test_any_json_is_a_value_or_refused(kind, value):
    """No value of JSON does either."""
    try:
        read_value(kind, value)
    except ValueError:
        assert json.dumps(value) is not None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "1.0"), ("integer", "١"), ("integer", str(2**63)), ("integer", ""), ("integer", "1_000"), ("integer", True),
        ("number", "nan"), ("number", "inf"), ("number", "1e999"), ("number", 10**400), ("number", "0x10"), ("number", False),
        ("boolean", "yes"), ("boolean", 1), ("date", "2026-02-30"), ("date", "20260101"), ("date", LAST),
        ("timestamp", "now"), ("timestamp", "2026-01-01T25:00"), ("timestamp", "0001-01-01T00:00+05:00"),
        ("string", "a\0b"), ("string", "\ud800"), ("string", "x" * 10_001), ("string", 7), ("string", None),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_type(kind, text):
    """Values of other types, and texts that only look like one, are refused."""
    with pytest.raises(ValueError, match="must be"):
        read_value(ParameterType(kind), text)


def test_times_without_a_zone_are_of_utc():
    """As everywhere on the command line; a date is its midnight."""
    assert read_value(ParameterType.TIMESTAMP, "2026-01-31T08:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert read_value(ParameterType.TIMESTAMP, "2026-01-31 10:00+02:00") == datetime(
        2026, 1, 31, 8, tzinfo=UTC
    )
    assert read_value(ParameterType.TIMESTAMP, date(2026, 1, 31)) == datetime(2026, 1, 31, tzinfo=UTC)
