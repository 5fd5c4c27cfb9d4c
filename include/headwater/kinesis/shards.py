"""The shards of a stream, and their records page by page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from headwater.kinesis.connection import kinesis_errors

# The most that one request may ask for.
MAX_RECORDS = 10_000
TRIM_HORIZON = "trim_horizon"
LATEST = "latest"
# Where in a shard: {"after": sequence number}, or {"at": milliseconds since 1970, or TRIM_HORIZON}.
Position = Mapping[str, Any]


@dataclass(frozen=True)
class Shard:
    """A shard. ``closed``: it takes no more records, because it was split or merged; its children do."""

    id: str
    parents: tuple[str, ...]
    closed: bool


@dataclass(frozen=True)
class Record:
    """A record; ``arrival`` is Kinesis' own time of it."""

    key: str
    data: bytes
    sequence: str
    arrival: datetime


@dataclass(frozen=True)
class Page:
    """The result of one request. ``behind_ms``: how far it ends before the shard's newest record; ``last``: the shard ends here."""

    records: tuple[Record, ...]
    behind_ms: int
    last: bool


class KinesisStream:
    """One stream, read through a client of boto3's. ``per_request``: records that one request asks for.

    All methods raise SourceNotFound, SourceAccessDenied and SourceUnreachable.
    """

    def __init__(self, client: Any, name: str, per_request: int = MAX_RECORDS) -> None:
        self._client = client
        self.name = name
        self._per_request = per_request

    def created_ms(self) -> int:
        """When the stream was made: another one of the same name has another time."""
        with kinesis_errors(self.name):
            answer = self._client.describe_stream_summary(StreamName=self.name)
        created: datetime = answer["StreamDescriptionSummary"]["StreamCreationTimestamp"]
        return _millis(created)

    def now_ms(self) -> int:
        """The time there: this machine's, as far as it agrees with the second that the service gives."""
        with kinesis_errors(self.name):
            answer = self._client.describe_stream_summary(StreamName=self.name)
        here = int(time.time() * 1000)
        text = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
        if text is None:
            return here
        there = _millis(parsedate_to_datetime(text))
        return min(max(here, there), there + 999)

    def shards(self) -> dict[str, Shard]:
        """All shards that still hold records, or take them, by id."""
        with kinesis_errors(self.name):
            pages = self._client.get_paginator("list_shards").paginate(StreamName=self.name)
            shards = [_shard(entry) for page in pages for entry in page["Shards"]]
        return {shard.id: shard for shard in shards}

    def pages(self, shard: str, position: Position, limit: int | None = None) -> Iterator[Page]:
        """The shard's records from a position on; endless for an open shard, whose newest end has ``behind_ms`` 0."""
        iterator = self._iterator(shard, position)
        while iterator is not None:
            try:
                answer = self._client.get_records(
                    ShardIterator=iterator, Limit=min(limit or MAX_RECORDS, self._per_request)
                )
            except self._client.exceptions.ExpiredIteratorException:
                # Five minutes have passed since the last request.
                iterator = self._iterator(shard, position)
                continue
            except Exception:
                with kinesis_errors(self.name):
                    raise
            records = tuple(_record(entry) for entry in answer["Records"])
            if records:
                position = {"after": records[-1].sequence}
            iterator = answer.get("NextShardIterator")
            yield Page(records, int(answer.get("MillisBehindLatest") or 0), iterator is None)

    def _iterator(self, shard: str, position: Position) -> str | None:
        how: dict[str, Any]
        if "after" in position:
            how = {
                "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                "StartingSequenceNumber": position["after"],
            }
        elif position["at"] == TRIM_HORIZON:
            how = {"ShardIteratorType": "TRIM_HORIZON"}
        else:
            how = {
                "ShardIteratorType": "AT_TIMESTAMP",
                "Timestamp": datetime.fromtimestamp(position["at"] / 1000, UTC),
            }
        with kinesis_errors(self.name):
            answer = self._client.get_shard_iterator(StreamName=self.name, ShardId=shard, **how)
        iterator: str | None = answer["ShardIterator"]
        return iterator


def _shard(entry: Mapping[str, Any]) -> Shard:
    parents = tuple(
        entry[name] for name in ("ParentShardId", "AdjacentParentShardId") if entry.get(name) is not None
    )
    closed = entry.get("SequenceNumberRange", {}).get("EndingSequenceNumber") is not None
    return Shard(entry["ShardId"], parents, closed)


def _record(entry: Mapping[str, Any]) -> Record:
    return Record(
        entry["PartitionKey"],
        bytes(entry["Data"]),
        str(entry["SequenceNumber"]),
        entry["ApproximateArrivalTimestamp"],
    )


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
