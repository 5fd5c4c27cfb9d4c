"""Which broken limits are announced, and how often."""

from __future__ import annotations

import pytest

from headwater.alerts.incidents import Breach, IncidentBook

SILVER, GOLD = Breach("silver", "silver: 900 s of lag"), Breach("gold", "gold: 80 s of lag")


@pytest.fixture
def book(tmp_path):
    """Open the book, as each run of a check does; gives a function of what is broken now."""
    clock = [1000.0]

    def look(*breaches, announce=True):
        clock[0] += 60
        opened = IncidentBook(tmp_path / "alerts" / "lag.json", lambda: clock[0])
        changes = opened.compare(breaches)
        if announce:
            opened.record_announced(opened=changes.opened)
            opened.record_announced(resolved=changes.resolved)
        return tuple([i.key for i in part] for part in (changes.opened, changes.ongoing, changes.resolved))

    look.file = tmp_path / "alerts" / "lag.json"
    return look


def test_an_incident_is_announced_at_its_beginning_and_its_end(book):
    """Not in between, over any number of looks and restarts; the same trouble later is a new incident."""
    assert book() == ([], [], [])
    assert book(SILVER) == (["silver"], [], [])
    assert book(SILVER) == ([], ["silver"], [])
    assert book(SILVER, GOLD) == (["gold"], ["silver"], [])
    assert book(GOLD) == ([], ["gold"], ["silver"])
    assert book() == ([], [], ["gold"])
    assert book() == ([], [], [])
    assert book(SILVER) == (["silver"], [], [])


def test_changed_numbers_are_the_same_incident(book):
    """The key tells what is broken; the first message and the beginning are kept."""
    book(SILVER)
    assert book(Breach("silver", "silver: 9000 s of lag")) == ([], ["silver"], [])
    (kept,) = IncidentBook(book.file).open_incidents()
    assert (kept.message, kept.since) == ("silver: 900 s of lag", 1060.0)


def test_what_could_not_be_announced_comes_up_again(book):
    """A mail server that is down loses no alert and no resolution."""
    assert book(SILVER, announce=False) == (["silver"], [], [])
    assert book(SILVER) == (["silver"], [], [])
    assert book(announce=False) == ([], [], ["silver"])
    assert book() == ([], [], ["silver"])


@pytest.mark.parametrize("text", ["", "[{", "{}", "[3]", "null"])
def test_a_damaged_book_begins_anew(book, caplog, text):
    """What is broken is announced once more, and the log says why; a check that can't be made would say nothing at all."""
    book(SILVER)
    book.file.write_text(text)
    assert book(SILVER) == (["silver"], [], [])
    assert book(SILVER) == ([], ["silver"], [])
    assert ("can't be read" in caplog.text) == (text != "{}")
