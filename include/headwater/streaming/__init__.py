"""Functions for Structured Streaming without a pipeline: the ones that guides write by hand, with their traps solved.

They need Spark and lie on the floor above (``headwater_spark.streaming``), from where they are fetched when they are asked
for; a type checker sees them there. See docs/hand-written-streams.md.

Decision 0179.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ENGINE = "headwater_spark.streaming"
_OF_THE_ENGINE = (
    "ingest_kafka_events",
    "process_stream_with_dlq",
    "start_streaming_with_retry",
    "upsert_changes",
)

__all__ = [*_OF_THE_ENGINE]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _OF_THE_ENGINE:
        return getattr(import_module(ENGINE), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
