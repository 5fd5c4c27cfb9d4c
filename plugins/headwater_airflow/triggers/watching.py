"""What all watchers of assets have in common: they look again and again, and know what Airflow has stored.

Looks block on files and brokers, so they run in threads, of which a triggerer has few for all its watchers.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any, Protocol

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted
from headwater_airflow.triggers.threads import in_thread

_LONGEST_PAUSE = 300.0
# By the key of a stream, the id of the trigger that it is opened for: Airflow makes the stream from the trigger's arguments alone.
_trigger_ids: dict[Hashable, int] = {}


class News(Protocol):
    """What a watch has found."""

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values, which become the event's payload: without secrets."""


class Watch(Protocol):
    """Looks for news. They come again until they are acknowledged."""

    def look(self) -> Any:
        """The News, None where there are none; may block."""

    def acknowledge(self, news: Any) -> None:
        """Remember, durably, that they were delivered; may block."""


class WatchTrigger(BaseEventTrigger):  # type: ignore[misc]  # Airflow's types are not followed
    """Emits news once Airflow has stored those before; it holds plain values only.

    A delivery is recorded on disk only after Airflow has the event in its database (the acknowledged mode of
    shared streams): a triggerer that is killed before that emits it again, and one killed just after may emit it
    twice. Whoever is woken keeps a position of its own.
    """

    # What it watches and how, as its constructor takes it.
    arguments: tuple[str, ...] = ()

    @abstractmethod
    def watched(self) -> str:
        """What it watches, for the log."""

    @abstractmethod
    def open_watch(self) -> Watch:
        """Make the watch; may block, and raise what is wrong."""

    @abstractmethod
    def poll_seconds(self) -> float:
        """How long to wait between two looks."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger's class and arguments."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            name: getattr(self, name) for name in self.arguments
        }

    def shared_stream_key(self) -> Hashable:
        """One stream for each watch: nothing is shared but the acknowledgements."""
        path, arguments = self.serialize()
        key = path, repr(sorted(arguments.items()))
        if self.trigger_id is not None:
            _trigger_ids[key] = self.trigger_id
        return key

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> WatchStream:
        """The stream that Airflow acknowledges."""
        trigger = cls(**kwargs)
        trigger.trigger_id = _trigger_ids.get(trigger.shared_stream_key())
        return WatchStream(trigger)

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Every news of the stream is an event."""
        async for payload in shared_stream:
            yield TriggerEvent(payload)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The same outside of a triggerer: an event counts as stored when the next one is requested."""
        stream = WatchStream(self)
        async for payload, news in stream.open_stream():
            yield TriggerEvent(payload)
            await stream.acknowledge(news)


class WatchStream(SharedStreamProducer):  # type: ignore[misc]
    """Looks until there are news, and remembers what Airflow has stored.

    What fails is looked at again, after pauses that grow up to five minutes; a line of the log says so once for each reason.

    Args:
        trigger: says what to watch.

    """

    def __init__(self, trigger: WatchTrigger) -> None:
        self.trigger = trigger
        self._watch: Watch | None = None
        self._delivered = asyncio.Event()

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], Any]]:
        """Each news when there are some; the search for the next begins when these were delivered."""
        await asyncio.sleep(self._spread())
        failures, reason = 0, ""
        while True:
            news = None
            try:
                news = await in_thread("watch", self._look)
            except Exception as error:  # whatever it is, the watch goes on, and the log has it
                failures += 1
                if (shown := _in_words(error)) != reason:
                    reason = shown
                    self.trigger.log.warning("%s can't be looked at: %s", self.trigger.watched(), reason)
            else:
                if failures:
                    self.trigger.log.info("%s can be looked at again.", self.trigger.watched())
                failures, reason = 0, ""
            if news is None:
                await asyncio.sleep(self._pause(failures))
                continue
            self._delivered.clear()
            yield news.as_dict(), news
            # What comes meanwhile makes one event: it is emitted when this one was delivered.
            await self._delivered.wait()

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Airflow has stored these events: they need not be emitted again."""
        for item in batch:
            if not item.outcome.is_clean:
                # Ends the stream; the next one emits it again.
                raise RuntimeError(f"An event of {self.trigger.watched()} did not arrive.")
            await self.acknowledge(item.broker_payload)

    async def acknowledge(self, news: Any) -> None:
        """Record that news were delivered, and look for the next."""
        assert self._watch is not None, "news come from a watch"
        await in_thread("watch", self._watch.acknowledge, news)
        self._delivered.set()

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _look(self) -> Any:
        if self._watch is None:
            self._watch = self.trigger.open_watch()
        return self._watch.look()

    def _pause(self, failures: int) -> float:
        seconds = self.trigger.poll_seconds()
        return (
            seconds if not failures else max(seconds, min(seconds * 2 ** min(failures, 16), _LONGEST_PAUSE))
        )

    def _spread(self) -> float:
        """Watches that start together look one after another."""
        return (
            zlib.crc32(repr(self.trigger.shared_stream_key()).encode()) / 2**32 * self.trigger.poll_seconds()
        )


def seconds_of(variable: str, default: float) -> float:
    """A number of seconds from the environment, 0.05 at least; ``default`` where it is not one."""
    try:
        return max(0.05, float(os.environ.get(variable, default)))
    except ValueError:
        return default


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, HeadwaterError | OSError) else quoted(error)
