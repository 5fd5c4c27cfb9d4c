"""Appends to the event log without blocking the threads that emit events.

Decision 0011.
"""

from __future__ import annotations

import atexit
import json
import logging
import socket
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwater.delta_log.conditions import words_of
from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.event import Event, Origin, arrow_schema, batch_event_id, event_table, flow_id
from headwater.event_log.failure import error_column
from headwater.event_log.redaction import details_json, shown
from headwater.event_log.sequence import LogSequence
from headwater.event_log.store_append import COMMITS_KEPT, OpenCommit, append_next, keep_short
from headwater.storage.delta_tables import append, delta_table
from headwater.storage.listing import looked_over
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

FLUSH_SECONDS = 1.0
_log = logging.getLogger(__name__)
# Records of batches may wait so long in a continuous update, which is watched and not waited for: fewer commits do.
CONTINUOUS_FLUSH_SECONDS = 5.0
# Unless so many of one flow wait: those that a killed driver has not written are evaluated again, and that has a limit.
_MOST_BATCHES_WAITING = 5
# Appends of one writer between two compactions.
_COMPACT_AFTER = 200
# A table of more files than this is compacted when a writer closes: a reader opens every file.
_COMPACT_ABOVE_FILES = 50


class EventLogWriter:
    """Records events of one update; a thread appends them to the table about once a second, in order.

    Safe to use from several threads. What can't be written is kept and tried again with the next append.
    """

    def __init__(
        self,
        state_folder: Place,
        pipeline_id: str,
        pipeline_name: str,
        update_id: str,
        request_id: str | None = None,
        *,
        flush_seconds: float = FLUSH_SECONDS,
        maintenance_id: str | None = None,
    ) -> None:
        """``flush_seconds``: how long records of batches wait for an append; the others wait for FLUSH_SECONDS at most."""
        self._flush_seconds = flush_seconds
        self._appends = self._total_appends = 0
        self._appended_at = time.monotonic()
        self._table = event_table(state_folder)
        about = Origin(pipeline_id, pipeline_name, update_id, request_id, maintenance_id=maintenance_id)
        self._origin = replace(about, host=socket.gethostname())
        self._instance = str(uuid.uuid4())
        self._moment = 0
        self._sequence = LogSequence(self._table)
        self._known_batches: dict[tuple[str, int], int] = {}
        self._recorded_batches: set[tuple[str, int, int]] = set()
        self._buffer: list[Event] = []
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._failure: Exception | None = None
        self._sent: tuple[OpenCommit, list[Event]] | None = None
        self._listeners: list[Callable[[Sequence[Event]], None]] = []
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="event-log", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    def set_known_batches(self, flow: str, epoch: int, last_batch: int | None) -> None:
        """Say up to which batch the log already holds a flow's records (``reader.last_batch``)."""
        if last_batch is not None:
            # What this writer has recorded since is known as well.
            self._known_batches[flow, epoch] = max(last_batch, self._known_batches.get((flow, epoch), -1))

    def has_batch(self, flow: str, epoch: int, batch_id: int) -> bool:
        """Whether the log has the record of a batch, or will have it: one that this writer took counts."""
        batch = (flow, epoch, batch_id)
        with self._lock:
            return batch in self._recorded_batches or batch_id <= self._known_batches.get(batch[:2], -1)

    def subscribe(self, listener: Callable[[Sequence[Event]], None]) -> None:
        """Have ``listener`` called with the events of each append, once they are in the table; it must not block."""
        self._listeners.append(listener)

    def emit(
        self,
        event_type: str,
        message: str,
        *,
        level: str = "INFO",
        flow: str | None = None,
        dataset: str | None = None,
        sink: str | None = None,
        batch_id: int | None = None,
        epoch: int | None = None,
        details: Mapping[str, Any] | None = None,
        error: BaseException | Mapping[str, Any] | None = None,
        maturity: str = "STABLE",
    ) -> bool:
        """Record an event; secrets are taken out and long texts cut before it is kept.

        ``maturity``: EVOLVING where the form of the details may still change.

        Returns:
            False where it was left out: the record of a batch that the log already holds.

        """
        status = (details or {}).get("flow_progress", {}).get("status")
        batch = (flow or "", epoch or 0, batch_id) if batch_id is not None and status == "RUNNING" else None
        event = partial(
            Event,
            batch_event_id(self._origin.pipeline_id, *batch) if batch else str(uuid.uuid4()),
            self._instance,
            origin=self._about(flow, dataset, sink, batch_id, epoch),
            message=shown(message),
            level=level,
            event_type=event_type,
            details=details_json(details),
            error=error_column(error) if error is not None else None,
            maturity_level=maturity,
        )
        with self._lock:
            if self._closed:
                raise EventLogNotWritten("The event log is closed.", where=self._table)
            if batch is not None and self._mark_recorded(batch):
                return False
            number, when = self._next_moment()
            self._buffer.append(event(sequence=number, timestamp=when))
        return True

    def _about(
        self, flow: str | None, dataset: str | None, sink: str | None, batch_id: int | None, epoch: int | None
    ) -> Origin:
        return replace(
            self._origin,
            flow_id=flow_id(self._origin.pipeline_id, flow, epoch or 0) if flow else None,
            flow_name=flow,
            dataset_name=dataset,
            sink_name=sink,
            batch_id=batch_id,
            epoch=epoch,
        )

    def _mark_recorded(self, batch: tuple[str, int, int]) -> bool:
        """Whether the log has a batch's record, or will; marks it as recorded."""
        if batch in self._recorded_batches or batch[2] <= self._known_batches.get(batch[:2], -1):
            return True
        self._recorded_batches.add(batch)
        # What follows the last known batch without a gap is one number: an update may run for days.
        flow, last = batch[:2], self._known_batches.get(batch[:2], -1)
        while (*flow, last + 1) in self._recorded_batches:
            last += 1
            self._recorded_batches.remove((*flow, last))
            self._known_batches[flow] = last
        return False

    def _next_moment(self) -> tuple[int, datetime]:
        # Microseconds since 1970, made strictly ascending. What orders the records of several writers is decided at the append.
        self._moment = max(self._moment + 1, time.time_ns() // 1000)
        seconds, micros = divmod(self._moment, 1_000_000)
        return self._moment, datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)

    def flush(self) -> None:
        """Write what is buffered now; raises EventLogNotWritten if that fails (the events are kept)."""
        self._append()
        if self._failure is not None:
            raise EventLogNotWritten(
                f"Records of the event log could not be written: {words_of(self._failure)}",
                where=self._table,
                remedy="Check that the folder can be written to and has space. Where the log itself is damaged, `headwater events PIPELINE_DIR` "
                "names the file: restore it, or move the folder aside, and the next update begins another log.",
            ) from self._failure

    def close(self) -> None:
        """Write the rest and end the thread; on failure the events go to standard error, and it raises."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self._at_exit)
        self._wake.set()
        self._thread.join()
        try:
            self.flush()
        except EventLogNotWritten:
            for event in self._buffer:
                print(json.dumps(event.row(), default=str), file=sys.stderr)
            raise
        self._compact()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while not self._wake.wait(min(FLUSH_SECONDS, self._flush_seconds)):
            if self._is_due():
                self._append()
            if self._appends >= (COMMITS_KEPT if isinstance(self._table, ObjectPath) else _COMPACT_AFTER):
                self._appends = 0
                self._compact()

    def _is_due(self) -> bool:
        """Whether something waits that should not, or anything has waited long enough."""
        with self._lock:
            waiting = list(self._buffer)
        if any(event.origin.batch_id is None for event in waiting):
            return True
        flows = Counter(event.origin.flow_id for event in waiting if event.event_type == "flow_progress")
        crowded = any(count >= _MOST_BATCHES_WAITING for count in flows.values())
        return crowded or time.monotonic() - self._appended_at >= self._flush_seconds

    def _append(self) -> None:
        with self._write_lock:
            written: list[list[Event]] = []
            try:
                for step in (self._settle, self._write):
                    if events := step():
                        self._let_go(events)
                        written.append(events)
            except Exception as error:
                if self._failure is None:
                    self._tell(logging.WARNING, "The event log can't be written for now", error)
                self._failure = error
            for events in written:
                for listener in self._listeners:
                    listener(events)

    def _settle(self) -> list[Event]:
        """Events of a commit whose answer got lost and that is there; another one with them would write them twice."""
        if self._sent is None:
            return []
        commit, events = self._sent
        done = commit.settle()
        self._sent = None
        return events if done else []

    def _write(self) -> list[Event]:
        """Append what waits to the table; gives the events as they are numbered there."""
        import pyarrow as pa

        with self._lock:
            waiting = list(self._buffer)
        if not waiting:
            return []

        def sending(commit: OpenCommit) -> None:
            self._sent = commit, numbered

        with looked_over(self._table / "_delta_log"):
            numbered = self._sequence.number(waiting)
            rows = pa.Table.from_pylist([event.row() for event in numbered], schema=arrow_schema())
            done = isinstance(self._table, ObjectPath) and append_next(self._table, rows, sending)
            self._sent = None
        if not done:
            self._table.parent.mkdir(parents=True, exist_ok=True)
            # Another version's table may have columns that this one lacks, or lack some of them.
            append(self._table, rows, mode="append", schema_mode="merge")
        return numbered

    def _let_go(self, events: list[Event]) -> None:
        """Take events that are in the table out of what waits."""
        self._failure = None
        self._appends += 1
        self._total_appends += 1
        self._appended_at = time.monotonic()
        if isinstance(
            self._table, Path
        ):  # on a store that is a request, as the look before the next append is
            self._sequence.appended()
        with self._lock:
            del self._buffer[: len(events)]

    def _compact(self) -> None:
        try:
            if isinstance(self._table, ObjectPath):
                keep_short(self._table, compact=self._total_appends > 1)
                return
            table = delta_table(self._table) if (self._table / "_delta_log").is_dir() else None
            if table is not None and len(table.file_uris()) > _COMPACT_ABOVE_FILES:
                table.optimize.compact()
        except Exception as error:
            self._tell(logging.WARNING, "The event log could not be compacted", error)

    def _tell(self, level: int, what: str, error: Exception) -> None:
        about = {"pipeline": self._origin.pipeline_id, "update": self._origin.update_id}
        _log.log(level, "%s: %s", what, error, extra=about)

    def _at_exit(self) -> None:
        try:
            self.close()
        except EventLogNotWritten as error:
            self._tell(logging.ERROR, "The process ends without its last events", error)
