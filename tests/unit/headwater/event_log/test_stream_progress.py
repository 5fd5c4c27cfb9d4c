"""What Spark says of a batch, as metrics and as an event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.event_log import stream_progress as stream_progress_module
from headwater.event_log.details import batch_millis
from headwater.event_log.redaction import MAX_TEXT, details_json
from headwater.event_log.stream_progress import (
    added_listing,
    progress_backlog,
    stream_metrics,
    stream_progress,
)

PROGRESS = {
    "name": "orders.windows",
    "timestamp": "2026-01-01T10:10:00.000Z",
    "batchId": 3,
    "batchDuration": 1200,
    "numInputRows": 50,
    "inputRowsPerSecond": 12.3456,
    "processedRowsPerSecond": 41.6666,
    "eventTime": {"watermark": "2026-01-01T10:00:30.500Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 1000, "customMetrics": {"a": 1}},
        {"numRowsTotal": 2, "memoryUsedBytes": 24, "numRowsDroppedByWatermark": 3},
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[orders]]",
            "endOffset": {"orders": {"0": 10, "1": 5}},
            "latestOffset": {"orders": {"0": 13, "1": 5}},
        },
        {
            "description": "DeltaSource",
            "endOffset": {"reservoirVersion": 3},
            "latestOffset": None,
            "metrics": {"numBytesOutstanding": "900", "numFilesOutstanding": "2"},
        },
    ],
}


def test_the_five_measures():
    """Input rate, processing rate, duration, state size and watermark lag are read from the progress."""
    assert stream_metrics(PROGRESS) == {
        "input_rows_per_second": 12.35,
        "processed_rows_per_second": 41.67,
        "batch_duration_ms": 1200,
        "state_rows": 9,
        "state_bytes": 1024,
        "late_rows": 3,
        "watermark_lag_seconds": 569.5,
    }


def test_what_a_query_does_not_have_is_left_out():
    """Without state, watermark and rates (a first batch says NaN) nothing is made up."""
    bare = {
        "batchDuration": 5,
        "inputRowsPerSecond": float("nan"),
        "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        "timestamp": "2026-01-01T10:10:00.000Z",
    }
    metrics = {name: value for name, value in stream_metrics(bare).items() if value is not None}
    assert metrics == {"batch_duration_ms": 5}
    assert progress_backlog(bare) == {}


def test_backlog_that_sources_tell_of():
    """Records of Kafka, bytes and files of Delta tables; a source of files says nothing."""
    assert progress_backlog(PROGRESS) == {"backlog_records": 3, "backlog_bytes": 900, "backlog_files": 2}
    files = {"sources": [{"endOffset": {"logOffset": 4}, "latestOffset": None, "metrics": {}}]}
    assert progress_backlog(files) == {}


def test_progress_json_is_json_and_small_and_without_secrets():
    """However much Spark says, the text in the event can be parsed, fits, and holds no secret."""
    loud = {**PROGRESS, "password": "hunter2", "observedMetrics": {f"m{n}": "x" * 50 for n in range(400)}}
    stored = json.loads(details_json(stream_progress(loud)))["stream_progress"]["progress_json"]
    assert len(stored) < MAX_TEXT
    assert "hunter2" not in stored
    assert json.loads(stored)["batchId"] == 3
    assert "customMetrics" not in stored

    many = {**PROGRESS, "sources": [{"description": "d" * 200, "endOffset": n} for n in range(200)]}
    stored = json.loads(details_json(stream_progress(many)))["stream_progress"]["progress_json"]
    assert json.loads(stored)["numInputRows"] == 50


def test_time_of_listing_is_summed_for_files_alone():
    """Batches that read files add their listing; a batch of Kafka, or of files beside Kafka, adds none."""
    files = {"sources": [{"description": "FileStreamSource[file:/in]"}], "durationMs": {"latestOffset": 40}}
    assert added_listing(None, PROGRESS) is None
    assert added_listing(added_listing(None, files), files) == 80
    assert added_listing(7, {**files, "sources": [*files["sources"], *PROGRESS["sources"]]}) == 7


def test_the_time_of_a_batch_in_older_logs_too():
    """The clock's time is what counts; a log of an earlier version had it under the name of the executors' time."""
    assert batch_millis({"batch_duration_ms": 900, "executor_time_ms": 50}) == 900
    assert batch_millis({"executor_time_ms": 700}) == 700
    assert batch_millis({}) is None


@pytest.mark.parametrize(
    ("end", "latest"),
    [(None, {"t": {"0": 5}}), ({"t": {"0": 5}}, None), ({"t": None}, {"t": {"0": 5}}), ({"t": {"0": 5}}, {"t": [5]}), ("5", {"t": {"0": 5}})],
)  # fmt: skip
def test_offsets_that_are_not_those_of_topics(end: Any, latest: Any):
    """Of another source, or of a batch before the first: how much is left is not known."""
    assert stream_progress_module._offsets_left(end, latest) is None


def test_moments_without_a_zone():
    """Spark's are in UTC; one that names its zone keeps it, and another text is none."""
    moment = stream_progress_module._moment
    assert (
        moment("2026-01-01T10:00:00") == moment("2026-01-01T10:00:00Z") == moment("2026-01-01T12:00:00+02:00")
    )
    assert moment("soon") is None
