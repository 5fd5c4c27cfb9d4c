"""Where batches of a Kinesis stream end, on a stream in memory that behaves as the service is documented to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from headwater.errors import SourcePositionLost
from headwater.kinesis.positions import StreamPlanner
from headwater.kinesis.shards import Page, Position, Record, Shard

SECOND = 1000


class MemoryStream:
    """Shards with records at given times (ms). ``page``: records of one request; ``requests``: how many there were."""

    name = "orders"

    def __init__(self, page: int = 3) -> None:
        self.created = 1
        self.known: dict[str, Shard] = {}
        self.records: dict[str, list[Record]] = {}
        self.page = page
        self.requests = 0

    def add(self, shard: str, *times: int, parents: tuple[str, ...] = (), closed: bool = False) -> None:
        """A shard with one record a time, or more records for it; numbers go up."""
        self.known[shard] = Shard(shard, parents, closed)
        records = self.records.setdefault(shard, [])
        for time in times:
            moment = datetime.fromtimestamp(time / 1000, UTC)
            records.append(Record("k", b"", str(len(records) + 100), moment))

    def created_ms(self) -> int:
        return self.created

    def now_ms(self) -> int:
        return 77

    def shards(self) -> dict[str, Shard]:
        return dict(self.known)

    def pages(self, shard: str, position: Position, limit: int | None = None) -> Iterator[Page]:
        records = self.records[shard]
        at = 0
        if "after" in position:
            at = sum(1 for record in records if int(record.sequence) <= int(position["after"]))
        elif position["at"] != "trim_horizon":
            at = sum(1 for record in records if record.arrival.timestamp() * 1000 < position["at"])
        while True:
            self.requests += 1
            page = records[at : at + min(limit or self.page, self.page)]
            at += len(page)
            behind = 0
            if at < len(records):
                newest = records[-1].arrival
                last = page[-1].arrival if page else records[at].arrival
                behind = max(1, int((newest - last).total_seconds() * 1000))
            last_page = at >= len(records) and self.known[shard].closed
            yield Page(tuple(page), behind, last_page)
            if last_page:
                return


def planner(stream: MemoryStream) -> StreamPlanner:
    """The planner of a run that ends with what is there."""
    planner_ = StreamPlanner(stream)  # type: ignore[arg-type]  # the same methods
    planner_.frozen = True
    return planner_


def positions(entry: dict[str, Any]) -> dict[str, Any]:
    """Of an entry, where its shards are."""
    return dict(entry["shards"])


def test_a_batch_ends_at_the_newest_record():
    """All shards are planned to their newest records; a second look in the same run finds nothing more."""
    stream = MemoryStream()
    stream.add("a", 1, 2)
    stream.add("b")
    run = planner(stream)
    begun = run.begin("trim_horizon")
    assert positions(begun) == {"a": {"at": "trim_horizon"}, "b": {"at": "trim_horizon"}}
    end = run.advance(begun)
    assert positions(end) == {"a": {"after": "101"}, "b": {"at": "trim_horizon"}}
    stream.add("a", 3)
    stream.add("b", 3)
    assert run.advance(end) == end
    assert positions(planner(stream).advance(end)) == {"a": {"after": "102"}, "b": {"after": "100"}}


def test_a_long_backlog_is_not_read_to_be_planned():
    """Of a thousand pages the planner reads the first, and those of the last seconds."""
    stream = MemoryStream(page=10)
    stream.add("a", *(number * SECOND for number in range(10_000)))
    run = planner(stream)
    end = run.advance(run.begin("trim_horizon"))
    assert positions(end) == {"a": {"after": str(100 + 9_999)}}
    assert stream.requests <= 4


def test_a_limit_is_kept():
    """With a limit each batch has at most so many records of a shard, until the end that the run began with."""
    stream = MemoryStream(page=2)
    stream.add("a", *range(7))
    run = planner(stream)
    entry = run.begin("trim_horizon")
    ends = []
    while (following := run.advance(entry, 3)) != entry:
        entry = following
        ends.append(entry["shards"]["a"]["after"])
        stream.add("a", 99)
    assert ends == ["102", "105", "106"]


def test_children_wait_for_their_parents():
    """Children join once all of their parents were read to the end, also where two shards were merged."""
    stream = MemoryStream()
    stream.add("a", 1, closed=True)
    stream.add("b", 1, 2)
    stream.add("c", 3, parents=("a", "b"))
    run = planner(stream)
    first = run.advance(run.begin("trim_horizon"))
    assert positions(first) == {"a": {"after": "100", "closed": True}, "b": {"after": "101"}}
    assert run.advance(first) == first
    stream.known["b"] = Shard("b", (), True)
    run = planner(stream)
    second = run.advance(first)
    assert positions(second)["b"] == {"after": "101", "closed": True}
    third = run.advance(second)
    assert positions(third)["c"] == {"at": "trim_horizon"}
    assert positions(run.advance(third))["c"] == {"after": "100"}


def test_an_empty_shard_that_was_closed():
    """It is done without a record, and its children follow."""
    stream = MemoryStream()
    stream.add("a", closed=True)
    stream.add("b", 5, parents=("a",))
    run = planner(stream)
    entry = run.begin("trim_horizon")
    for _ in range(3):
        entry = run.advance(entry)
    assert positions(entry) == {"a": {"at": "trim_horizon", "closed": True}, "b": {"after": "100"}}


def test_from_now_on():
    """Without a starting point the entry has the time, which later looks do not change; children begin there too."""
    stream = MemoryStream()
    stream.add("a", 1, 70, closed=True)
    stream.add("b", 76, 78, parents=("a",))
    run = planner(stream)
    entry = run.begin(None)
    assert positions(entry) == {"a": {"at": 77}}
    for _ in range(2):
        entry = run.advance(entry)
    assert positions(entry) == {"a": {"at": 77, "closed": True}, "b": {"at": 77}}
    assert positions(run.advance(entry))["b"] == {"after": "101"}


def test_closed_shards_are_forgotten_when_they_expire():
    """A shard that was read to its end may vanish; one that was not is a loss, and is refused."""
    stream = MemoryStream()
    stream.add("a", 1, closed=True)
    stream.add("b", 1)
    run = planner(stream)
    entry = run.advance(run.begin("trim_horizon"))
    del stream.known["a"]
    assert positions(planner(stream).advance(entry)) == {"b": {"after": "100"}}
    del stream.known["b"]
    with pytest.raises(SourcePositionLost) as caught:
        planner(stream).advance(entry)
    assert "Shard b" in caught.value.what
    assert "--reset-checkpoint" in caught.value.remedy


def test_another_stream_of_the_name():
    """A stream that was recreated is refused, because its numbers start over."""
    stream = MemoryStream()
    stream.add("a", 1)
    entry = planner(stream).begin("trim_horizon")
    stream.created = 2
    with pytest.raises(SourcePositionLost, match="recreated"):
        planner(stream).advance(entry)
