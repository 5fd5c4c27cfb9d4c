"""What Spark says of a batch, taken from the JVM in one call."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from headwater_spark.execution.progress import BatchProgress, ProgressListener, _OneCall, read_progress

RUN = "11111111-2222-3333-4444-555555555555"
# As Spark 4.2 writes it: a rate that is no number is left out.
BODY: dict[str, Any] = {
    "id": "99999999-2222-3333-4444-555555555555",
    "runId": RUN,
    "name": "case.orders",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 7,
    "batchDuration": 12,
    "numInputRows": 3,
    "durationMs": {"addBatch": 5},
    "stateOperators": [],
    "sources": [
        {"description": "files", "startOffset": None, "endOffset": {"logOffset": 2}, "numInputRows": 3},
        {"description": "rate", "startOffset": None, "endOffset": None, "numInputRows": 0},
    ],
    "sink": {"description": "Delta", "numOutputRows": -1},
    "observedMetrics": {"headwater": {"rows": 3, "dropped": None, "a name with blanks": 1}},
}


class Event:
    """An event in the JVM, which counts how often it is asked."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body, self.calls = body, 0

    def progress(self) -> Event:
        self.calls += 1
        return self

    def json(self) -> str:
        self.calls += 1
        return json.dumps(self.body)


def test_what_a_batch_is_recorded_from():
    """Numbers, counts of rules (also those that are null), and offsets as the checkpoint writes them."""
    progress = read_progress(json.dumps(BODY))
    assert (progress.name, progress.runId, progress.batchId, progress.numInputRows) == (
        "case.orders",
        RUN,
        7,
        3,
    )
    assert [source.endOffset for source in progress.sources] == ['{"logOffset":2}', "null"]
    assert progress.observedMetrics["headwater"].asDict() == {
        "rows": 3,
        "dropped": None,
        "a name with blanks": 1,
    }
    assert json.loads(progress.json) == BODY


def test_without_rules_and_without_a_name():
    """What Spark leaves out is empty."""
    bare = {name: value for name, value in BODY.items() if name not in ("observedMetrics", "numInputRows")}
    progress = read_progress(json.dumps({**bare, "name": None}))
    assert (progress.name, progress.numInputRows, dict(progress.observedMetrics)) == (None, 0, {})


def test_a_batch_costs_one_text():
    """The query's handler gets the batch; nothing else is fetched from the JVM, and no other handler is called."""
    seen: list[tuple[str, BatchProgress]] = []
    listener = ProgressListener()
    for name in ("case.orders", "case.other"):
        listener.expect(name, lambda progress, name=name: seen.append((name, progress)))  # type: ignore[misc]
    event = Event(BODY)
    _OneCall(listener).onQueryProgress(event)
    _OneCall(listener).onQueryProgress(Event({**BODY, "name": "somebody's"}))
    assert [(name, progress.batchId) for name, progress in seen] == [("case.orders", 7)]
    assert event.calls == 2


def test_the_end_of_a_query():
    """Whoever waits for a query goes on when its run has ended, and not when another's has."""
    listener = ProgressListener()
    ended = listener.expect("case.orders", lambda _: None)
    listener.onQueryStarted(SimpleNamespace(name="case.orders", runId=RUN))  # type: ignore[arg-type]
    listener.onQueryTerminated(SimpleNamespace(runId="another"))  # type: ignore[arg-type]
    assert not ended.is_set()
    listener.onQueryTerminated(SimpleNamespace(runId=RUN))  # type: ignore[arg-type]
    assert ended.is_set()
