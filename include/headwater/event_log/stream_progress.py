"""The progress report of a streaming query after a batch, as metrics and as an event.

The five that the listener of a hand-written stream would show: input rate, processing rate, batch duration, state
size, watermark lag.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headwater.event_log.redaction import MAX_TEXT, redact

# What Spark adds for itself, and repeats with each batch.
_BULKY = ("customMetrics", "observedMetrics")


def stream_metrics(progress: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The measures of one batch; a None is one that the query does not have (state, a watermark).

    Args:
        progress: what ``StreamingQueryProgress`` prints as JSON, parsed.

    Returns:
        ``input_rows_per_second`` (rows that came in while the batch before it ran), ``processed_rows_per_second``,
        ``batch_duration_ms``, ``state_rows``, ``state_bytes`` (in memory), ``late_rows`` (that the watermark left out), ``watermark_lag_seconds`` (how far the
        watermark was behind the clock as the batch began).

    """
    states = progress.get("stateOperators") or []
    return {
        "input_rows_per_second": _rounded(progress.get("inputRowsPerSecond")),
        "processed_rows_per_second": _rounded(progress.get("processedRowsPerSecond")),
        "batch_duration_ms": _whole_number(progress.get("batchDuration")),
        "state_rows": sum(int(s.get("numRowsTotal") or 0) for s in states) if states else None,
        "state_bytes": sum(int(s.get("memoryUsedBytes") or 0) for s in states) if states else None,
        "late_rows": sum(int(s.get("numRowsDroppedByWatermark") or 0) for s in states) if states else None,
        "watermark_lag_seconds": _watermark_lag(progress),
    }


def progress_backlog(progress: Mapping[str, Any]) -> dict[str, int]:
    """What a batch has left unread at its sources, as far as the sources report it to Spark.

    ``backlog_bytes`` and ``backlog_files`` of Delta tables, ``backlog_records`` of Kafka. A source of another kind is
    left out, and the flow's terminal record has what was measured there.
    """
    backlog: dict[str, int] = {}
    for source in progress.get("sources") or []:
        metrics = source.get("metrics") or {}
        for name, spelled in (
            ("backlog_bytes", "numBytesOutstanding"),
            ("backlog_files", "numFilesOutstanding"),
        ):
            if str(metrics.get(spelled, "")).isdigit():
                backlog[name] = backlog.get(name, 0) + int(metrics[spelled])
        records = _offsets_left(source.get("endOffset"), source.get("latestOffset"))
        if records is not None:
            backlog["backlog_records"] = backlog.get("backlog_records", 0) + records
    return backlog


def added_listing(before: int | None, progress: Mapping[str, Any]) -> int | None:
    """``before`` (milliseconds) and the time that this batch took to list folders, where it reads nothing but files."""
    sources = progress.get("sources") or []
    if not sources or not all(str(s.get("description", "")).startswith("FileStreamSource") for s in sources):
        return before
    return (before or 0) + int((progress.get("durationMs") or {}).get("latestOffset") or 0)


def _offsets_left(end: Any, latest: Any) -> int | None:
    """Records between two offsets of Kafka: topic, partition, offset."""
    if not isinstance(end, Mapping) or not isinstance(latest, Mapping):
        return None
    left = 0
    for topic, partitions in latest.items():
        read = end.get(topic)
        if not isinstance(partitions, Mapping) or not isinstance(read, Mapping):
            return None
        left += sum(max(0, int(last) - int(read.get(number, last))) for number, last in partitions.items())
    return left


def stream_progress(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Details of a ``stream_progress`` event: Spark's own JSON as text, without secrets and short enough to be whole."""
    shown: Any = redact(progress)
    text = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) > MAX_TEXT:
        text = json.dumps(_without(shown, _BULKY), separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) > MAX_TEXT:
        fields = (
            "id",
            "runId",
            "name",
            "timestamp",
            "batchId",
            "batchDuration",
            "numInputRows",
            "durationMs",
        )
        text = json.dumps({key: shown[key] for key in fields if key in shown}, separators=(",", ":"))
    return {"stream_progress": {"progress_json": text}}


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def _watermark_lag(progress: Mapping[str, Any]) -> float | None:
    mark = _moment((progress.get("eventTime") or {}).get("watermark"))
    now = _moment(progress.get("timestamp"))
    # Before the first event Spark shows the year 1970.
    if mark is None or now is None or mark.year <= 1970:
        return None
    return round((now - mark).total_seconds(), 3)


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _rounded(value: Any) -> float | None:
    # Where a batch took no time at all, Spark gives NaN or infinity, which JSON can't express.
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(float(value), 2)


def _whole_number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None
