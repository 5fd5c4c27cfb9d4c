"""Durations and sizes in words."""

from __future__ import annotations

import pytest

from headwater.contract.quantities import age, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (42, "42 s"),
        (119, "119 s"),
        (120, "2 min"),
        (5400, "90 min"),
        (12600, "3.5 h"),
        (200000, "2.3 d"),
    ],
)
def test_a_duration_is_shown_in_the_unit_that_reads_best(seconds: float | None, text: str):
    """An hour and a half is 90 min, not 1 h."""
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, ""), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (2_500_000, "2 MB"), (1.5e12, "1.5 TB")],
)
def test_a_size_is_shown_in_decimal_units(count: float | None, text: str):
    """A kilobyte is 1,000 bytes."""
    assert size(count) == text
