"""Runs the users' event hooks beside an update: one call at a time, in the order of the log.

Decision 0081.
"""

from __future__ import annotations

import copy
import json
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headwater.definitions.event_hook import EventHook
from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.details import hook_progress
from headwater.event_log.event import Event
from headwater.event_log.writer import EventLogWriter

# How long the end of an update waits for slow hooks. Lakeflow has such a limit too, and no setting for it.
DRAIN_SECONDS = 20.0


@dataclass
class _Standing:
    """A hook, and how many of its last calls failed."""

    hook: EventHook
    failures: int = 0
    disabled: bool = False


class EventHooks:
    """Passes what the writer has persisted to the hooks, on a thread of its own.

    Only STABLE events, and none of ``hook_progress``, or a failing hook would wake itself for ever.
    """

    def __init__(self, hooks: Sequence[EventHook], events: EventLogWriter) -> None:
        self._standings = [_Standing(hook) for hook in hooks]
        self._events = events
        self._waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._idle = threading.Condition(self._lock)
        self._ended = False
        self._running: str | None = None
        self._thread = threading.Thread(target=self._run, name="event-hooks", daemon=True)

    def start(self, earlier: Sequence[Event] = ()) -> None:
        """Listen to the writer from now on; without hooks nothing is started.

        Args:
            earlier: events that are in the log already, and that no hook has received.
        """
        if not self._standings:
            return
        for standing in self._standings:
            self._tell(standing, "ENABLED", f"The event hook {standing.hook.name} is enabled.")
        self._thread.start()
        self._offer(earlier)
        self._events.subscribe(self._offer)

    def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Wait until every event written so far was delivered, at most ``seconds``; then deliver nothing more.

        Returns whether all were. What is left, and a call that still runs, are abandoned: an update does not wait for a
        hook that hangs.
        """
        if not self._standings:
            return True
        ends = time.monotonic() + seconds
        with self._idle:
            while self._open and (left := ends - time.monotonic()) > 0:
                self._idle.wait(left)
            self._ended = True
            lost, running = self._open, self._running
        self._waiting.put(None)
        if not lost:
            return True
        for standing in self._standings:
            if not standing.disabled:
                loss = f"{lost} events were not handed to every hook within {seconds:g} s"
                busy = f"; {running} was still running" if running else ""
                self._tell(
                    standing, "STOPPED", f"The event hook {standing.hook.name} was stopped: {loss}{busy}."
                )
        return False

    def _offer(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.maturity_level == "STABLE" and event.event_type != "hook_progress":
                with self._lock:
                    if self._ended:
                        return
                    self._open += 1
                self._waiting.put(event)

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            for standing in self._standings:
                if standing.disabled or self._ended:
                    continue
                self._running = standing.hook.name
                self._call(standing, event)
                self._running = None
            with self._idle:
                self._open -= 1
                self._idle.notify_all()

    def _call(self, standing: _Standing, event: Event) -> None:
        try:
            standing.hook.function(hook_argument(event))
        except (
            BaseException
        ) as error:  # also exit() in a hook: it ends neither the update nor the other hooks
            # After the drain there is no listener any more, and the log may be closed.
            if not self._ended:
                self._note_failure(standing, event, error)
            return
        standing.failures = 0

    def _note_failure(self, standing: _Standing, event: Event, error: BaseException) -> None:
        standing.failures += 1
        name, limit = standing.hook.name, standing.hook.max_failures
        what = f"The event hook {name} failed on a {event.event_type} event: {type(error).__name__}: {error}"
        self._tell(standing, "FAILED", what, level="WARN", error=error)
        if limit is not None and standing.failures > limit:
            standing.disabled = True
            often = f"{standing.failures} calls in a row failed, and {limit} may"
            self._tell(standing, "DISABLED", f"The event hook {name} is disabled for this update: {often}.")

    def _tell(
        self,
        standing: _Standing,
        state: str,
        message: str,
        *,
        level: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        with suppress(EventLogNotWritten):  # a call that outlived the update finds the log closed
            self._events.emit(
                "hook_progress",
                message,
                level=level or ("INFO" if state == "ENABLED" else "WARN"),
                details=hook_progress(standing.hook.name, state, standing.failures),
                error=error,
            )


def hook_argument(event: Event) -> dict[str, Any]:
    """The event as a hook sees it: plain JSON values, ``details`` parsed, ``timestamp`` as ISO text in UTC."""
    row = event.row()
    row["timestamp"] = event.timestamp.isoformat()
    row["details"] = json.loads(event.details)
    return copy.deepcopy(row)
