"""Which records of a Kinesis stream a batch has: from where to where, and that none of them is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headwater.errors import FlowFailed, SourcePositionLost
from headwater.kinesis.shards import Record
from headwater_spark.sources import kinesis as module
from headwater_spark.sources.kinesis import KinesisReader, ShardRange


class Planner:
    """Says what it was asked."""

    def __init__(self, name: str) -> None:
        self.name, self.frozen = name, False

    def begin(self, since: int | None) -> Any:
        """Where a stream begins."""
        return ("begin", self.name, since, self.frozen)

    def advance(self, entry: Any, rows: int | None) -> Any:
        """The end of the next batch."""
        return ("advance", self.name, entry, rows, self.frozen)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> KinesisReader:
    """A reader of the streams ``a`` and ``b`` from moment 5 on."""
    options: Any = SimpleNamespace(streams=("a", "b"), since=5, per_batch=None)
    monkeypatch.setattr(module, "StreamPlanner", Planner)
    monkeypatch.setattr(KinesisReader, "_stream", lambda _, name: name)
    return KinesisReader(options)


def entry(**after: str | None) -> dict[str, Any]:
    """A stream's entry in an offset: the last record of each shard."""
    return {"shards": {name: {"after": last} if last else {"since": 5} for name, last in after.items()}}


def test_the_first_batch_says_where_streams_begin(reader: KinesisReader):
    """It is empty, and the same on every call; a stream that comes later begins then."""
    first = reader.initialOffset()
    assert first == reader.initialOffset()
    assert reader.latestOffset(first, ReadAllAvailable()) == {
        "a": ("begin", "a", 5, False),
        "b": ("begin", "b", 5, False),
    }
    known = entry(s="1")
    assert reader.latestOffset({"a": known}, ReadAllAvailable()) == {
        "a": ("advance", "a", known, None, False),
        "b": ("begin", "b", 5, False),
    }


@pytest.mark.parametrize(("limit", "each"), [(30, 10), (31, 10), (2, 1)])
def test_a_limit_is_shared_by_all_shards(reader: KinesisReader, limit: int, each: int):
    """At least a record of each goes on."""
    start = {"a": entry(s="1", t="2"), "b": entry(s="1")}
    ends = reader.latestOffset(start, ReadMaxRows(limit))
    assert [end[3] for end in ends.values()] == [each, each]


def test_a_run_to_the_end_has_one(reader: KinesisReader):
    """From then on planners keep the end that they see first."""
    reader.latestOffset({"a": entry(s="1")}, ReadAllAvailable())
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"a": entry(s="1")}, ReadAllAvailable())["a"][4] is True


def test_the_limit_of_a_read(reader: KinesisReader):
    """As its option says, else all there is."""
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)
    reader._options.per_batch = 7  # type: ignore[misc]
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)


def test_ranges_of_a_batch(reader: KinesisReader):
    """Shards that were known before and have new records; one that comes with this batch is read in the next."""
    start = {"a": entry(same="1", more="1", begun=None, closed="4")}
    end = {"a": entry(same="1", more="3", begun="2", new="9"), "b": entry(s="1")}
    assert reader.partitions(start, end) == [
        ShardRange("a", "more", {"after": "1"}, "3"),
        ShardRange("a", "begun", {"since": 5}, "2"),
    ]
    assert reader.partitions({"begun": False}, end) == []
    assert reader.partitions({"a": entry(s=None)}, {"a": entry(s=None)}) == []


def record(number: int, data: bytes = b"x") -> Record:
    """A record of a shard."""
    return Record(key="k", data=data, sequence=str(number), arrival=None)  # type: ignore[arg-type]


def read(
    monkeypatch: pytest.MonkeyPatch, *pages: tuple[list[Record], int, bool], end: str = "3"
) -> list[str]:
    """The records of a range that ends at a number. Pages: records, how far they are behind, and whether the shard ends there."""
    listed = [
        SimpleNamespace(records=records, behind_ms=behind, last=last) for records, behind, last in pages
    ]
    stream = SimpleNamespace(
        pages=lambda shard, start: iter(listed) if (shard, start) == ("s", {"after": "0"}) else None
    )
    monkeypatch.setattr(KinesisReader, "_stream", lambda *_: stream)
    rows = KinesisReader(SimpleNamespace()).read(ShardRange("a", "s", {"after": "0"}, end))  # type: ignore[arg-type]
    return [row[4] for row in rows]


def test_records_up_to_the_end(monkeypatch: pytest.MonkeyPatch):
    """Page after page, empty ones too, up to the last record, which is one of them."""
    pages = [([record(1)], 9, False), ([], 9, False), ([record(2), record(3), record(4)], 0, False)]
    assert read(monkeypatch, *pages) == ["1", "2", "3"]
    assert read(monkeypatch, ([record(9), record(10)], 0, True), end="10") == ["9", "10"]
    assert read(monkeypatch, ([record(1)], 0, False), ([record(3)], 0, False)) == ["1", "3"]


@pytest.mark.parametrize(
    "pages",
    [
        [([record(1), record(4)], 9, False)],
        [([record(1)], 9, True)],
        [([record(1)], 9, False), ([], 0, False)],
        [([], 9, True)],
    ],
)
def test_a_last_record_that_is_gone(monkeypatch: pytest.MonkeyPatch, pages: list[Any]):
    """The batch would not be what it was: it is refused, not cut short."""
    with pytest.raises(SourcePositionLost, match="record 3 of s"):
        read(monkeypatch, *pages)


def test_records_that_hold_several(monkeypatch: pytest.MonkeyPatch):
    """One row would be made of many: refused with what to do."""
    with pytest.raises(FlowFailed, match="holds several"):
        read(monkeypatch, ([record(1, b"\xf3\x89\x9a\xc2more")], 0, False))


def test_the_columns_of_a_record():
    """In the order of the schema."""
    row = module._row(ShardRange("a", "s", {}, "1"), record(1, b"\xf3\x89"))
    assert row == ("k", b"\xf3\x89", "a", "s", "1", None)
    assert [column.split()[0] for column in module.SCHEMA.split(", ")] == [
        "partitionKey", "data", "stream", "shardId", "sequenceNumber", "approximateArrivalTimestamp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "public"),
    [
        ({}, {"streamName": "a,b", "initialPosition": "latest"}),
        ({"since": "trim_horizon"}, {"streamName": "a,b", "initialPosition": "trim_horizon"}),
        (
            {"since": 0, "per_batch": 7},
            {"streamName": "a,b", "initialPosition": "0", "maxRecordsPerTrigger": "7"},
        ),
        (
            {"region": "eu", "endpoint": "http://e", "credentials": ("key", "Hunter2Canary")},
            {
                "streamName": "a,b",
                "initialPosition": "latest",
                "region": "eu",
                "endpoint": "http://e",
                "headwater.credentials": "of the read",
            },
        ),
    ],
)
def test_options_that_may_be_shown(given: dict[str, Any], public: dict[str, str]):
    """Enough to find new data by; of a login, only that there is one."""
    connection = SimpleNamespace(**{name: given.get(name) for name in ("region", "endpoint", "credentials")})
    options: Any = SimpleNamespace(
        streams=("a", "b"), since=given.get("since"), per_batch=given.get("per_batch"), connection=connection
    )
    assert module._public_options(options) == public
