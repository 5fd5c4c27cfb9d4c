"""What a stream from Kafka has not read yet.

Brokers count offsets, not bytes: bytes are an estimate, by the size of the first messages that are unread in each partition.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from headwater.errors import SourceUnreachable
from headwater.kafka.offsets import BrokerTopics, Connect, FirstMessages, Partition, TopicReader
from headwater.metrics.backlog import Backlog

_EARLIEST, _LATEST = -2, -1


def kafka_backlog(
    options: Mapping[str, str],
    offset: Mapping[str, Mapping[str, int]] | None,
    connect: Connect = BrokerTopics,
) -> Backlog:
    """The messages between the checkpoint's offsets (None if never run) and the ends of the partitions."""
    servers = options.get("kafka.bootstrap.servers")
    if not servers:
        return Backlog.because("the manifest does not say where the Kafka broker is")
    try:
        with connect(servers) as topics:
            return _measure(topics, options, offset)
    except SourceUnreachable as error:
        return Backlog.because(error.what)


def _measure(
    topics: TopicReader, options: Mapping[str, str], offset: Mapping[str, Mapping[str, int]] | None
) -> Backlog:
    if offset is None and any(
        name in options for name in ("startingTimestamp", "startingOffsetsByTimestamp")
    ):
        return Backlog.because("the first run starts at a point in time", moved=True)
    starts = _starting(options) if offset is None else offset
    positions: dict[Partition, int] = {}
    unread: dict[Partition, int] = {}
    for place in topics.partitions(options):
        low, high = topics.bounds(place)
        at = _position(place, starts, low, high, first_run=offset is None)
        if at > high:
            shown = f"{place[0]}-{place[1]}"
            return Backlog.because(
                f"{shown} ends at {high}, before the checkpoint's {at}: recreated?", moved=True
            )
        if at < high:
            positions[place] = max(at, low)
            unread[place] = high - max(at, low)
    seconds: float | None = 0.0
    size: int | None = 0
    if positions:
        first = topics.first_messages(positions)
        times = [one.written_at for one in first.values() if one.written_at is not None]
        seconds = max(0.0, time.time() - min(times)) if times else None
        size = _estimated_bytes(unread, first)
    # A first run that begins at the end reads what arrives after it has started: before that nothing is certain.
    moved = None if starts == "latest" else bool(positions)
    return Backlog(records=sum(unread.values()), bytes=size, seconds=seconds, moved=moved)


def _estimated_bytes(unread: Mapping[Partition, int], first: Mapping[Partition, FirstMessages]) -> int | None:
    """The size of what is unread, None where no partition showed a message."""
    if not first:
        return None
    usual = sum(one.mean_bytes for one in first.values()) / len(first)
    sizes = (
        count * (first[place].mean_bytes if place in first else usual) for place, count in unread.items()
    )
    return round(sum(sizes))


def _starting(options: Mapping[str, str]) -> Any:
    # Spark's default for a stream's first run is what arrives from then on.
    text = options.get("startingOffsets", "latest").strip()
    return json.loads(text) if text.startswith("{") else text.lower()


def _position(place: Partition, starts: Any, low: int, high: int, *, first_run: bool) -> int:
    if isinstance(starts, str):
        return high if starts == "latest" else low
    topic, number = place
    at = starts.get(topic, {}).get(str(number))
    if at is None:
        # A partition that is new since the last batch is read from its start.
        return high if first_run else low
    return {_EARLIEST: low, _LATEST: high}.get(int(at), int(at))
