"""Spark's streaming progress, passed on to the flow that runs the query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

ProgressHandler = Callable[[Any], None]


class ProgressListener(StreamingQueryListener):
    """One listener for all queries of a session; handlers are registered under the query's name before it starts."""

    def __init__(self) -> None:
        self._handlers: dict[str, ProgressHandler] = {}
        self._names: dict[str, str] = {}
        self._ended: dict[str, threading.Event] = {}

    def expect(self, name: str, handler: ProgressHandler) -> threading.Event:
        """Send progress of the query ``name`` to ``handler``; the returned event is set when no more will come."""
        self._handlers[name] = handler
        self._ended[name] = threading.Event()
        return self._ended[name]

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - the protocol's spelling
        """Remember the name of a run: the event of its end has none."""
        if event.name is not None:
            self._names[str(event.runId)] = event.name

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Pass on a batch's progress."""
        handler = self._handlers.get(event.progress.name or "")
        if handler is not None:
            handler(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Signal that no more progress will come."""
        name = self._names.pop(str(event.runId), None)
        if name is not None and name in self._ended:
            self._handlers.pop(name, None)
            self._ended[name].set()
