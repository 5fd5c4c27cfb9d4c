"""Who holds a lease, as those who are refused are shown it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.leases.holder import Holder, holder_of, in_progress, token_of


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


def test_a_lease_is_free_in_a_second_at_the_least():
    """What is over already is still looked at once; where nothing is known of it, nothing is promised."""
    assert "free in 1 s at most" in in_progress("", "place", dead_in=timedelta(0)).remedy
    assert "free in" not in in_progress("", "place").remedy


def test_whose_text_it_is():
    """By update and token together: the same update may have held it before, and another one has the next token."""
    mine = Holder("an-update", 3)
    assert mine.wrote(mine.text(renewed=7))
    assert mine.wrote(mine.text(free=True))
    assert not mine.wrote(mine.with_token(4).text())
    assert not mine.wrote(Holder("another", 3).text())
    assert not mine.wrote("")


@pytest.mark.parametrize(
    ("text", "token"),
    [('{"token": 7}', 7), ('{"token": "7"}', 0), ('{"token": null}', 0), ("{}", 0), ("", 0)],
)
def test_the_token_of_a_lease(text: str, token: int):
    """The next holder has a greater one; of a text that names none, the next is the first."""
    assert token_of(holder_of(text)) == token
