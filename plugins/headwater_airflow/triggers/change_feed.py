"""Wakes DAGs when a table's rows change. It runs in the triggerer as the watcher of an asset."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Hashable, Sequence
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from headwater.change_feed.change_filter import ChangeFilter
from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.change_watch import ChangeWatch
from headwater.errors import HeadwaterError
from headwater_airflow.roots import storage_folder, warehouse_table

_LOG_AFTER = 20
_POLL_SECONDS = 5.0


class ChangeFeedTrigger(BaseEventTrigger):  # type: ignore[misc]  # Airflow's types are not followed
    """Tells each range of changes of a table, once Airflow has stored the one before.

    What was told is remembered on disk only after Airflow has the event in its database (the acknowledged mode of
    shared streams): a triggerer that is killed anywhere before tells it again, and one killed just after may tell it
    twice. Whoever is woken keeps a position of its own (``@changes``), for which a second call is empty.

    Args:
        table: ``[catalog.]schema.table`` below the warehouse.
        types, columns, min_rows, quiet_seconds: as in ChangeFilter.

    Between two looks at the table's log lie HEADWATER_CHANGE_POLL_SECONDS (of the triggerer's environment; 5).

    """

    def __init__(
        self,
        table: str,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        min_rows: int = 1,
        quiet_seconds: float = 0.0,
    ) -> None:
        super().__init__()
        self.table = table
        self.types = list(types)
        self.columns = list(columns)
        self.min_rows = min_rows
        self.quiet_seconds = quiet_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger's class and arguments."""
        names = ("table", "types", "columns", "min_rows", "quiet_seconds")
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            name: getattr(self, name) for name in names
        }

    def shared_stream_key(self) -> Hashable:
        """One stream for each watch: nothing is shared but the acknowledgements."""
        path, arguments = self.serialize()
        return path, json.dumps(arguments, sort_keys=True)

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> ChangeFeedStream:
        """The stream that Airflow acknowledges."""
        return ChangeFeedStream(cls(**kwargs))

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Every range of the stream is an event."""
        async for found in shared_stream:
            yield TriggerEvent(found)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The same outside of a triggerer: an event counts as stored when the next one is asked for."""
        stream = ChangeFeedStream(self)
        async for raw, found in stream.open_stream():
            yield TriggerEvent(raw)
            await asyncio.to_thread(stream.watch.told, found)


class ChangeFeedStream(SharedStreamProducer):  # type: ignore[misc]
    """Looks at the table's log, and remembers what Airflow has stored.

    Args:
        trigger: says what to watch.

    """

    def __init__(self, trigger: ChangeFeedTrigger) -> None:
        self.trigger = trigger
        wanted = ChangeFilter.checked(trigger.types, trigger.columns, trigger.min_rows, trigger.quiet_seconds)
        self.watch = ChangeWatch(
            trigger.table, warehouse_table(trigger.table), wanted, watch_file(trigger.table, wanted)
        )
        self._acknowledged = asyncio.Event()

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], ChangeRange]]:
        """Each range when there is one; the next is looked for when this one has arrived."""
        failures = 0
        while True:
            try:
                found = await asyncio.to_thread(self.watch.look)
                failures = 0
            except (HeadwaterError, OSError) as error:
                failures += 1
                if failures % _LOG_AFTER == 1:
                    self.trigger.log.warning("The changes of %s are not known: %s", self.trigger.table, error)
                found = None
            if found is not None:
                self._acknowledged.clear()
                yield found.as_dict(), found
                # Commits that come meanwhile make one range: it is told when this one has arrived.
                await self._acknowledged.wait()
            else:
                await asyncio.sleep(_poll_seconds())

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Airflow has stored these: they need not be told again."""
        for item in batch:
            if not item.outcome.is_clean:
                # Ends the stream; the next one tells it again.
                raise RuntimeError(f"An event of {self.trigger.table} did not arrive.")
            await asyncio.to_thread(self.watch.told, item.broker_payload)
        self._acknowledged.set()

    async def aclose(self) -> None:
        """Nothing is held open."""


def _poll_seconds() -> float:
    try:
        return max(0.05, float(os.environ.get("HEADWATER_CHANGE_POLL_SECONDS", _POLL_SECONDS)))
    except ValueError:
        return _POLL_SECONDS


def watch_file(table: str, wanted: ChangeFilter) -> Path:
    """Where a watch remembers what was told; another filter is another watch."""
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]
    return storage_folder() / "change_feeds" / "watches" / f"{table}.{digest}.json"
