"""Who holds a lease, as those who are refused are shown it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.leases.holder import Holder, in_progress


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (Holder("an-update", 3, "machine", 12, "2026-01-31T08:00:00+00:00").text(renewed=4), "an-update, process 12 of machine, since 2026-01-31T08:00:00+00:00"),
        (" ", "just starting"),
        ('{"update_id": "an-', "its lease can't be read"),
        ("[]", "its lease can't be read"),
    ],
)  # fmt: skip
def test_who_is_in_the_way(content: str, shown: str):
    """The update, its process, its machine and since when, without its token; a text that is empty or cut is named as such."""
    error = in_progress(content, "place", dead_in=timedelta(seconds=44.2))
    assert error.what == f"Another update of this pipeline is running: {shown}."
    assert "free in 45 s at most" in error.remedy
