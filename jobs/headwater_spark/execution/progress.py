"""Spark's streaming progress, passed on to the flow that runs the query."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Row
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headwater_spark.java_classes import java_class

_LISTENER = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"


@dataclass(frozen=True)
class SourceEnd:
    """Where a batch ended in one source: Spark's own text of the offset."""

    endOffset: str  # noqa: N815 - named as in Spark's progress


@dataclass(frozen=True)
class BatchProgress:
    """What Spark says of a batch, named as in ``StreamingQueryProgress``; ``json``: all of it, as text."""

    json: str
    name: str | None
    runId: str  # noqa: N815
    batchId: int  # noqa: N815
    numInputRows: int  # noqa: N815
    sources: tuple[SourceEnd, ...]
    observedMetrics: Mapping[str, Row]  # noqa: N815


def read_progress(text: str) -> BatchProgress:
    """The progress of a batch from Spark's JSON text of it."""
    body: dict[str, Any] = json.loads(text)
    return BatchProgress(
        text,
        body.get("name"),
        str(body["runId"]),
        int(body["batchId"]),
        int(body.get("numInputRows") or 0),
        tuple(SourceEnd(_offset_text(source.get("endOffset"))) for source in body["sources"]),
        {name: Row(**counts) for name, counts in (body.get("observedMetrics") or {}).items()},
    )


def _offset_text(offset: Any) -> str:
    return offset if isinstance(offset, str) else json.dumps(offset, separators=(",", ":"))


ProgressHandler = Callable[[BatchProgress], None]


class _OneCall(JStreamingQueryListener):
    """Takes a batch's progress from the JVM as one text.

    PySpark's own conversion asks for every field, and reads maps to an end that Java reports with an exception, for which
    PySpark looks up two dozen classes by name: hundreds of calls for each batch.
    """

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - the protocol's spelling
        """Pass on a batch's progress."""
        progress: Any = read_progress(jevent.progress().json())
        self.pylistener.onQueryProgress(QueryProgressEvent(progress))


class ProgressListener(StreamingQueryListener):
    """One listener for all queries of a session; handlers are registered under the query's name before it starts."""

    def __init__(self) -> None:
        self._handlers: dict[str, ProgressHandler] = {}
        self._names: dict[str, str] = {}
        self._ended: dict[str, threading.Event] = {}
        self._in_java: Any = None

    @property
    def _jlistener(self) -> Any:
        """What PySpark hands to the JVM when it adds or removes this listener."""
        if self._in_java is None:
            jvm: Any = SparkContext._jvm  # noqa: SLF001 - as PySpark's own property
            self._in_java = java_class(jvm, _LISTENER)(_OneCall(self))
        return self._in_java

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
            progress: Any = event.progress
            handler(progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Signal that no more progress will come."""
        name = self._names.pop(str(event.runId), None)
        if name is not None and name in self._ended:
            self._handlers.pop(name, None)
            self._ended[name].set()
