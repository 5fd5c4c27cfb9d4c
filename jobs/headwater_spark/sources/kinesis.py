"""``format("kinesis")``: streams of Amazon Kinesis as a Python data source, with the closed platform's columns.

Code for Python workers is pickled by value: they do not have the driver's import path.
"""

from __future__ import annotations

import functools
import itertools
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.streaming.readwriter import DataStreamReader

import headwater.errors
import headwater.kinesis.connection
import headwater.kinesis.positions
import headwater.kinesis.shards
from headwater.errors import FlowFailed, InvalidSourceOption, SourcePositionLost
from headwater.kinesis.connection import NOT_AGGREGATED
from headwater.kinesis.positions import StreamPlanner
from headwater.kinesis.shards import KinesisStream, Record
from headwater_spark.java_classes import java_class
from headwater_spark.sources.kinesis_options import KinesisOptions, parse_kinesis_options

_LOG = logging.getLogger("headwater.sources")
FORMAT = "kinesis"
SCHEMA = (
    "partitionKey STRING, data BINARY, stream STRING, shardId STRING, sequenceNumber STRING, "
    "approximateArrivalTimestamp TIMESTAMP"
)
# The first entry in a checkpoint must be the same on every call, so streams are queried afterwards.
_NOT_BEGUN: dict[str, Any] = {"begun": False}
_AGGREGATED = b"\xf3\x89\x9a\xc2"
_numbers = itertools.count(1)


def kinesis_frame(session: SparkSession, read_options: Mapping[str, str]) -> DataFrame:
    """The stream of a read. ``read_options``: its options, keys in lower case.

    Raises:
        InvalidSourceOption: as :func:`parse_kinesis_options`.
    """
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    options = parse_kinesis_options(read_options, functools.partial(_java_time, session), zone)
    for note in options.notes:
        _tell(note)
    # Keys travel inside the pickled source: options of a read are shown in plans and logs.
    name = f"{FORMAT}_{next(_numbers)}"
    for module in _SENT:
        cloudpickle.register_pickle_by_value(sys.modules[module])  # type: ignore[no-untyped-call]
    session.dataSource.register(_source(name, options))
    return DataStreamReader(session).format(name).options(**_public_options(options)).load()


@functools.cache
def _tell(note: str) -> None:
    _LOG.warning("note: %s", note)


def _public_options(options: KinesisOptions) -> dict[str, str]:
    """The public options of the read: enough to detect new data."""
    public = {"streamName": ",".join(options.streams)}
    public["initialPosition"] = "latest" if options.since is None else str(options.since)
    if options.per_batch is not None:
        public["maxRecordsPerTrigger"] = str(options.per_batch)
    if options.connection.region is not None:
        public["region"] = options.connection.region
    if options.connection.endpoint is not None:
        public["endpoint"] = options.connection.endpoint
    if options.connection.credentials is not None:
        public["headwater.credentials"] = "of the read"
    return public


def _java_time(session: SparkSession, text: str, pattern: str) -> int:
    from py4j.protocol import Py4JJavaError

    dates = java_class(session._jvm, "java.text.SimpleDateFormat")  # noqa: SLF001 - the pattern is Java's
    try:
        return int(dates(pattern).parse(text).getTime())
    except Py4JJavaError as error:
        raise InvalidSourceOption(
            f"initialPosition: {text!r} is not of the format {pattern!r}: {error.java_exception.getMessage()}.",
            remedy='Write {"at_timestamp": "2025-01-31 10:00:00"}, or correct the format.',
        ) from None


@dataclass
class ShardRange(InputPartition):
    """Records of a shard: from a position to the one with the number ``end``, which is the last."""

    stream: str
    shard: str
    start: dict[str, Any]
    end: str


class KinesisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and reads their ranges in tasks."""

    def __init__(self, options: KinesisOptions) -> None:
        self._options = options
        self._frozen = False
        self._planners: dict[str, StreamPlanner] = {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's spelling
        """Fix the end of each shard at its first look-up from now on."""
        self._frozen = True

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """No entries: the first batch is empty, and records where the streams begin, so that it can be repeated."""
        return _NOT_BEGUN

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """``maxRecordsPerTrigger``."""
        limit = self._options.per_batch
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The entries of all streams at the end of the next batch."""
        entries = {} if start == _NOT_BEGUN else start
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if rows is not None:
            shards = sum(len(entry["shards"]) for entry in entries.values())
            rows = max(1, rows // max(1, shards))
        return {
            name: self._planner(name).advance(entries[name], rows)
            if name in entries
            else self._planner(name).begin(self._options.since)
            for name in self._options.streams
        }

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One range for each known shard that has new records."""
        return [
            ShardRange(name, shard, before, now["after"])
            for name, entry in end.items()
            for shard, now in entry["shards"].items()
            if (before := start.get(name, {"shards": {}})["shards"].get(shard)) is not None
            and "after" in now
            and now["after"] != before.get("after")
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The records of a range; raises SourcePositionLost where its last record no longer exists."""
        assert isinstance(partition, ShardRange)
        stream = self._stream(partition.stream)
        last = int(partition.end)
        for page in stream.pages(partition.shard, partition.start):
            for record in page.records:
                if int(record.sequence) > last:
                    raise _lost(partition)
                yield _row(partition, record)
                if int(record.sequence) == last:
                    return
            if page.last or (page.behind_ms == 0 and not page.records):
                raise _lost(partition)

    def _planner(self, name: str) -> StreamPlanner:
        if name not in self._planners:
            self._planners[name] = StreamPlanner(self._stream(name))
        self._planners[name].frozen = self._frozen
        return self._planners[name]

    def _stream(self, name: str) -> KinesisStream:
        return KinesisStream(self._options.connection.client(), name, self._options.per_request)


def _source(name: str, options: KinesisOptions) -> type[DataSource]:
    """The data source of one read, under a name of its own."""

    class KinesisSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: Any) -> KinesisReader:  # noqa: N802, ARG002 - Spark's
            return KinesisReader(options)

    return KinesisSource


def _row(partition: ShardRange, record: Record) -> tuple[Any, ...]:
    if record.data.startswith(_AGGREGATED):
        raise FlowFailed(
            f"Record {record.sequence} of {partition.stream!r} holds several, put together by Kinesis' producer library.",
            remedy=NOT_AGGREGATED,
        )
    return (
        record.key,
        record.data,
        partition.stream,
        partition.shard,
        record.sequence,
        record.arrival,
    )


def _lost(partition: ShardRange) -> SourcePositionLost:
    return SourcePositionLost(
        f"A batch of the Kinesis stream {partition.stream!r} was to end at record {partition.end} of {partition.shard}, "
        "which is not there any more.",
        remedy="Records expire with the stream's retention period. --reset-checkpoint FLOW goes on from initialPosition, "
        "and rows may double.",
    )


_SENT = (
    headwater.errors.__name__,
    headwater.kinesis.connection.__name__,
    headwater.kinesis.shards.__name__,
    headwater.kinesis.positions.__name__,
    "headwater_spark.sources.kinesis_options",
    __name__,
)
