"""The lag of a stream from Kinesis: only its age, since Kinesis does not report how many records are unread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headwater.errors import FlowFailed, SourceUnreachable
from headwater.kinesis.connection import Connection
from headwater.kinesis.shards import KinesisStream, Position, Shard
from headwater.metrics.backlog import Backlog, total

# Requests for one shard: where none of them shows a record, or the end, the lag is not known.
_TRIES = 20


def kinesis_backlog(options: Mapping[str, str], offset: Mapping[str, Any] | None) -> Backlog:
    """The age of what came behind the checkpoint's positions (None if never run).

    With keys of AWS's default chain only: those that were given with a read are written nowhere.
    """
    if "headwater.credentials" in options:
        return Backlog.because("the keys of the Kinesis stream are given with the read, and kept nowhere")
    if offset is None:
        return Backlog.because("the stream from Kinesis has not begun", moved=True)
    connection = Connection(options.get("region"), options.get("endpoint"))
    try:
        client = connection.client(attempts=2)
        parts = [
            _stream_backlog(KinesisStream(client, name), offset.get(name))
            for name in options.get("streamName", "").split(",")
        ]
    except (SourceUnreachable, FlowFailed) as error:
        return Backlog.because(error.what)
    return total(parts)


def _stream_backlog(stream: KinesisStream, entry: Mapping[str, Any] | None) -> Backlog:
    if entry is None:
        return Backlog.because(f"{stream.name} has not begun", moved=True)
    if stream.created_ms() != entry["created"]:
        return Backlog.because(f"{stream.name} was deleted and recreated", moved=True)
    shards, positions = stream.shards(), entry["shards"]
    if any(shard not in positions for shard in shards):
        return Backlog.because(f"{stream.name} was resharded", moved=True)
    return total(_shard_backlog(stream, shards[key], at) for key, at in positions.items() if key in shards)


def _shard_backlog(stream: KinesisStream, shard: Shard, position: Position) -> Backlog:
    if position.get("closed"):
        return Backlog(seconds=0.0, moved=False)
    for _, page in zip(range(_TRIES), stream.pages(shard.id, position, 1), strict=False):
        if page.records:
            age = time.time() - page.records[0].arrival.timestamp()
            return Backlog(seconds=max(0.0, age), moved=True)
        if page.last or page.behind_ms == 0:
            # A shard that was closed is read to its end once more, for its children to follow.
            return Backlog(seconds=0.0, moved=shard.closed or page.last)
    return Backlog.because(f"{shard.id} of {stream.name} shows neither a record nor its end")
