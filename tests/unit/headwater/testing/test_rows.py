"""Comparing rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from headwater.testing import assert_same_rows


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": None}, {"A": 1}),
        ({"a": Decimal("1.50")}, {"a": 1.5}),
        ({"a": Decimal(100)}, {"a": 100}),
        ({"a": 0.1 + 0.2}, {"a": 0.3}),
        ({"t": datetime(2026, 1, 1, 12, tzinfo=UTC)}, {"t": datetime(2026, 1, 1, 12)}),  # noqa: DTZ001
        (
            {"t": datetime(2026, 1, 1, 12, tzinfo=UTC)},
            {"t": datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))},
        ),
        ({"s": {"x": 1, "y": None}}, {"s": {"x": 1}}),
    ],
)
def test_equal(one, other):
    """Spelling does not tell values apart: letter case of columns, number types, time zones, absent NULLs."""
    assert_same_rows([one], [other])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": True}, {"a": 1}),
        ({"a": 1}, {"b": 1}),
        ({"a": None}, {"a": 0}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": Decimal(12345678901234567890123456789012345678)}, {"a": Decimal(12345678901234567890123456789012345677)}),
    ],
)  # fmt: skip
def test_different(one, other):
    """What differs in value, type or column is shown."""
    with pytest.raises(AssertionError):
        assert_same_rows([one], [other])


def test_order_and_number():
    """Order does not matter, number does: a row that is there twice is expected twice."""
    assert_same_rows([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}])
    with pytest.raises(AssertionError, match=r"only in the result: \{a: 1\}"):
        assert_same_rows([{"a": 1}, {"a": 1}], [{"a": 1}])


def test_message():
    """The message names both sides and shows what only one of them has, cut off where it is much."""
    with pytest.raises(AssertionError) as error:
        assert_same_rows([{"a": n} for n in range(12)], [{"a": 99}], names=("table", "batch result"))
    text = str(error.value)
    assert "the table has 12, the batch result 1" in text
    assert "only in the table: 2 more" in text
    assert "only in the batch result: {a: 99}" in text


def test_ignored_columns():
    """A column that is ignored is not compared, however it is spelled."""
    assert_same_rows([{"a": 1, "at": 5}], [{"a": 1, "At": 6}], ignore=["AT"])
