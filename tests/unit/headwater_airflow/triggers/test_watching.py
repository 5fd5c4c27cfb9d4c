"""News are emitted until Airflow has stored them, and what fails is looked at again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.triggers.watching import WatchStream, WatchTrigger, seconds_of


class News:
    """Number ``number``."""

    def __init__(self, number: int) -> None:
        self.number = number

    def as_dict(self) -> dict[str, Any]:
        return {"number": self.number}


class Watched(WatchTrigger):
    """Watches a list of looks."""

    arguments = ("name",)

    def __init__(self, name: str = "one", looks: Any = ()) -> None:
        super().__init__()
        self.name, self.looks, self.delivered, self.opened = name, list(looks), [], 0

    def watched(self) -> str:
        return f"The list {self.name}"

    def open_watch(self) -> Any:
        self.opened += 1
        return self

    def poll_seconds(self) -> float:
        return 0.01

    def look(self) -> Any:
        answer = self.looks.pop(0) if self.looks else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def acknowledge(self, news: Any) -> None:
        self.delivered.append(news.number)


def item(news: News, *, clean: bool) -> Any:
    """What Airflow says of an event that it has stored, or could not."""
    return SimpleNamespace(outcome=SimpleNamespace(is_clean=clean), broker_payload=news)


def test_the_next_news_are_looked_for_when_the_last_were_stored():
    """An event that is not stored yet keeps the next one back, and each is remembered once it is."""
    trigger = Watched(looks=[News(1), None, OSError("stale"), News(2)])
    stream = WatchStream(trigger)

    async def run() -> None:
        events = stream.open_stream()
        payload, first = await anext(events)
        assert payload == {"number": 1}
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        assert not following.done()
        assert len(trigger.looks) == 3
        await stream.advance([item(first, clean=True)])
        payload, second = await asyncio.wait_for(following, 20)
        assert (payload, trigger.delivered) == ({"number": 2}, [1])
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        assert not following.done()
        await stream.advance([item(second, clean=True)])
        following.cancel()

    asyncio.run(run())
    assert (trigger.delivered, trigger.opened) == ([1, 2], 1)


def test_an_event_that_did_not_arrive_is_not_remembered():
    """The stream ends, and the next one emits it again."""
    trigger = Watched()
    with pytest.raises(RuntimeError, match="did not arrive"):
        asyncio.run(WatchStream(trigger).advance([item(News(1), clean=False)]))
    assert trigger.delivered == []


def test_pauses_after_failures_grow_and_end_at_five_minutes():
    """Without a failure it is the usual pause; one that is longer than five minutes stays as it is."""
    stream = WatchStream(Watched())
    assert [stream._pause(failures) for failures in (0, 1, 2, 3)] == [0.01, 0.02, 0.04, 0.08]
    assert stream._pause(100) == 300.0
    stream.trigger.poll_seconds = lambda: 400.0  # type: ignore[method-assign]
    assert [stream._pause(failures) for failures in (0, 1, 9)] == [400.0, 400.0, 400.0]


def test_watches_that_start_together_are_spread_over_a_pause():
    """Each has a moment of its own below one pause, the same after each start."""
    moments = {WatchStream(Watched(str(name)))._spread() for name in range(50)}
    assert len(moments) == 50
    assert all(0 <= moment < 0.01 for moment in moments)
    assert WatchStream(Watched("7"))._spread() in moments


def test_a_number_of_seconds_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    """Not less than 0.05, and the default where it is no number."""
    monkeypatch.delenv("HEADWATER_TEST_SECONDS", raising=False)
    assert seconds_of("HEADWATER_TEST_SECONDS", 30.0) == 30.0
    for text, seconds in (("7", 7.0), ("0.06", 0.06), ("0", 0.05), ("soon", 30.0)):
        monkeypatch.setenv("HEADWATER_TEST_SECONDS", text)
        assert seconds_of("HEADWATER_TEST_SECONDS", 30.0) == seconds
