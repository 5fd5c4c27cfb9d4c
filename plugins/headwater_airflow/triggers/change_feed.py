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
    """Emits each range of changes of a table, once Airflow has stored the one before.

    A delivery is recorded on disk only after Airflow has the event in its database (the acknowledged mode of
    shared streams): a triggerer that is killed before that emits it again, and one killed just after may emit it
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
        async for changes in shared_stream:
            yield TriggerEvent(changes)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """The same outside of a triggerer: an event counts as stored when the next one is requested."""
        stream = ChangeFeedStream(self)
        async for raw, changes in stream.open_stream():
            yield TriggerEvent(raw)
            await asyncio.to_thread(stream.watch.acknowledge, changes)


class ChangeFeedStream(SharedStreamProducer):  # type: ignore[misc]
    """Looks at the table's log, and remembers what Airflow has stored.

    Args:
        trigger: says what to watch.

    """

    def __init__(self, trigger: ChangeFeedTrigger) -> None:
        self.trigger = trigger
        change_filter = ChangeFilter.checked(
            trigger.types, trigger.columns, trigger.min_rows, trigger.quiet_seconds
        )
        self.watch = ChangeWatch(
            trigger.table,
            warehouse_table(trigger.table),
            change_filter,
            watch_file(trigger.table, change_filter),
        )
        self._acknowledged = asyncio.Event()

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], ChangeRange]]:
        """Each range when there is one; the search for the next begins when this one was delivered."""
        failures = 0
        while True:
            try:
                changes = await asyncio.to_thread(self.watch.look)
                failures = 0
            except (HeadwaterError, OSError) as error:
                failures += 1
                if failures % _LOG_AFTER == 1:
                    self.trigger.log.warning("The changes of %s are not known: %s", self.trigger.table, error)
                changes = None
            if changes is not None:
                self._acknowledged.clear()
                yield changes.as_dict(), changes
                # Commits that come meanwhile make one range: it is emitted when this one was delivered.
                await self._acknowledged.wait()
            else:
                await asyncio.sleep(_poll_seconds())

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Airflow has stored these events: they need not be emitted again."""
        for item in batch:
            if not item.outcome.is_clean:
                # Ends the stream; the next one emits it again.
                raise RuntimeError(f"An event of {self.trigger.table} did not arrive.")
            await asyncio.to_thread(self.watch.acknowledge, item.broker_payload)
        self._acknowledged.set()

    async def aclose(self) -> None:
        """Nothing is held open."""


def _poll_seconds() -> float:
    try:
        return max(0.05, float(os.environ.get("HEADWATER_CHANGE_POLL_SECONDS", _POLL_SECONDS)))
    except ValueError:
        return _POLL_SECONDS


def watch_file(table: str, change_filter: ChangeFilter) -> Path:
    """Where a watch records what was delivered; another filter is another watch."""
    digest = hashlib.sha256(repr(change_filter).encode()).hexdigest()[:12]
    return storage_folder() / "change_feeds" / "watches" / f"{table}.{digest}.json"
