"""A store that says 409 (another request for the key is under way) has not said that the object is there."""

from __future__ import annotations

import pytest
from tests.faulty_store import Fault, Plan, faulty_store

from headwater.event_log.reader import events
from headwater.event_log.writer import EventLogWriter
from headwater.storage import atomic
from headwater.storage.atomic import change_text, create_text
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.delta_tables import delta_table


class Conflicts(Plan):
    """The next so many conditional puts are answered with 409."""

    def __init__(self, times: int) -> None:
        super().__init__(0, 0)
        self.times = times

    def next(self, method: str, *, conditional: bool) -> Fault | None:
        if not conditional or not self.times:
            return None
        self.times -= 1
        return Fault.CONFLICT


@pytest.fixture(scope="module")
def s3(moto):
    """A server that others have written."""
    return moto


@pytest.fixture
def busy(s3, monkeypatch):
    """A place behind a proxy that answers so; give it how often."""
    plan = Conflicts(0)
    with faulty_store(s3.endpoint, plan) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        yield plan, type(s3)(endpoint, s3.log, s3.process).place("places", "busy")


def test_it_is_tried_again(busy):
    """What is then written is ours; what is there is not touched; and where it never ends, that is said."""
    plan, place = busy
    plan.times = 2
    assert create_text(place / "one", "ours") is not None
    assert create_text(place / "one", "others") is None
    assert (place / "one").read_text() == "ours"
    plan.times = 100
    with pytest.raises(StoreUnreachable, match="another request"):
        create_text(place / "two", "ours")
    plan.times = 0
    assert not (place / "two").exists()


def test_a_change_is_tried_again(busy, monkeypatch):
    """The object is still the one that it was to be: nobody has changed it, and no caller is told that somebody has."""
    plan, place = busy
    tag = create_text(place / "three", "first")
    plan.times = 2
    new = change_text(place / "three", "second", tag)
    assert new is not None
    assert change_text(place / "three", "third", tag) is None
    plan.times = 100
    monkeypatch.setattr(atomic, "_CONFLICTS", 2)  # each of them is some tries of the client's own
    with pytest.raises(StoreUnreachable, match="another request"):
        change_text(place / "three", "third", new)
    plan.times = 0
    assert (place / "three").read_text() == "second"


def test_the_event_log_has_no_gap(busy, tmp_path, monkeypatch):
    """An append that meets a conflict takes the next version, and not the one behind it, which would end the log for ever."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    plan, state = busy
    with EventLogWriter(state, "orders", "orders", "u") as log:
        for number in range(4):
            log.emit("user_action", str(number))
            log.flush()
            plan.times = 1
    assert [record["message"] for record in events(state)] == ["0", "1", "2", "3"]
    assert delta_table(state / "system" / "events").version() == 3
