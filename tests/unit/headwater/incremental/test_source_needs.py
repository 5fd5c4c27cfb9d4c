"""What a source would need for its changes to be followed."""

from __future__ import annotations

import pytest

from headwater.incremental.source_needs import SourceNeeds


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (SourceNeeds(False, True, grown=False, changed=False), "a Delta table"),
        (SourceNeeds(True, False, grown=False, changed=False), "a join in place of the subquery"),
        (SourceNeeds(True, True, grown=False, changed=False), "a column of the result"),
        (SourceNeeds(True, True, grown=True, changed=False), "nothing for new rows; for others a column"),
        (SourceNeeds(True, True, grown=True, changed=True, change_feed=False), "nothing; with delta.enableChangeDataFeed=true"),
    ],
)  # fmt: skip
def test_what_is_missing(needs: SourceNeeds, words: str) -> None:
    """Each lack with its remedy, the one that matters most."""
    assert needs.text.startswith(words)


@pytest.mark.parametrize("feed", [True, None])
def test_nothing_is_missing(feed: bool | None) -> None:
    """A source that is followed, with its change feed or before there is a table."""
    assert SourceNeeds(True, True, grown=True, changed=True, change_feed=feed).text == "nothing"
