"""How much of its sources a backfill reads, and what of a range the live stream has read before."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater_spark.written_table import commit

from headwater.backfills.backfill_range import BackfillRange, RangeKind
from headwater.backfills.conditions import (
    BackfillNotPossible,
    InvalidRange,
    RangeAlreadyWritten,
    RangeNotReadYet,
)
from headwater.backfills.live_position import LivePosition
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.place import spark_uri
from headwater_spark.backfills.source_limits import (
    DeltaLimit,
    FilesLimit,
    KafkaLimit,
    chosen_part,
    everything,
    read_again,
    read_so_far,
)
from headwater_spark.backfills.source_overlap import check_overlap

WHOLE = {"index": -1, "isStartingVersion": False}


def delta(table: Path = Path("/t"), **options: str) -> StreamSource:
    """A Delta table as a source."""
    return StreamSource(SourceKind.DELTA, "t", table=table, options=options)


def kafka(**options: str) -> StreamSource:
    """A topic as a source."""
    return StreamSource(SourceKind.KAFKA, "k", options=options or {"Subscribe": "b,a", "kafka.x": "y"})


def files(folder: Path, **options: str) -> StreamSource:
    """A folder as a source."""
    return StreamSource(SourceKind.FILES, "f", path=str(folder), options=options)


def start(tmp_path: Path, *sources: StreamSource, **state: Any) -> FlowStart:
    """A flow over these sources."""
    checkpoint = FlowCheckpoint(tmp_path / "state" / "checkpoints" / "orders" / "f")
    return FlowStart("p", "f", "orders", checkpoint, FlowState(**state), None, None, sources=sources or None)


def position(tmp_path: Path, *pairs: tuple[StreamSource, Any]) -> LivePosition:
    """Where the live stream stands at each source."""
    folder = start(tmp_path).folder
    return LivePosition(tuple(s for s, _ in pairs), tuple(e for _, e in pairs), 0, (), folder)


def seen(tmp_path: Path, source: int, *entries: tuple[str, int]) -> None:
    """The files that a stream has taken in: path and the source's own batch."""
    folder = start(tmp_path).folder / "sources" / str(source)
    folder.mkdir(parents=True)
    for path, batch in entries:
        lines = (folder / str(batch)).read_text().splitlines() if (folder / str(batch)).exists() else ["v1"]
        lines.append(json.dumps({"path": f"file://{path}", "timestamp": 0, "batchId": batch}))
        (folder / str(batch)).write_text("\n".join(lines))


def test_of_a_table_all_before_the_position(tmp_path: Path):
    """A stream that stands at version 5 has read the rows as they are at version 4; one that stands at none, none."""
    source = delta(skipChangeCommits="true")
    at = position(tmp_path, (source, {"reservoirVersion": 5, **WHOLE}), (delta(), None))
    assert read_so_far(at, "f") == (
        DeltaLimit(Path("/t"), None, 4, changes=False, skips_changes=True),
        DeltaLimit(Path("/t"), None, -1),
    )


@pytest.mark.parametrize("middle", [{"index": 3}, {"index": 0}, {"index": -1, "isStartingVersion": True}])
def test_in_the_middle_of_a_version(tmp_path: Path, middle: dict[str, Any]):
    """Which of its rows have come can't be determined: refused."""
    at = position(tmp_path, (delta(), {"reservoirVersion": 5, **middle}))
    with pytest.raises(RangeNotReadYet):
        read_so_far(at, "f")


def test_of_a_topic_all_before_the_position(tmp_path: Path):
    """From the earliest offset to the next one of each partition; nothing where nothing was read."""
    topics = (("subscribe", "b,a"),)
    at = position(tmp_path, (kafka(), {"a": {"0": 7}}), (kafka(), None))
    assert read_so_far(at, "f") == (
        KafkaLimit(topics, "earliest", '{"a": {"0": 7}}'),
        KafkaLimit(topics, "earliest", "{}"),
    )


def test_of_a_folder_the_files_that_were_taken_in(tmp_path: Path):
    """Those up to the batch of the position, of this source; a mark behind a name is no part of it."""
    source = files(tmp_path / "in")
    seen(tmp_path, 1, ("/in/a", 0), ("/in/b%3Fsuperseded=1", 1), ("/in/c", 2))
    seen(tmp_path, 0, ("/in/other", 0))
    at = position(tmp_path, (delta(), None), (source, {"logOffset": 1}), (source, None))
    limits = read_so_far(at, "f")
    assert limits[1] == FilesLimit(str(tmp_path / "in"), frozenset({"/in/a", "/in/b"}))
    assert limits[2] == FilesLimit(str(tmp_path / "in"), frozenset())


@pytest.mark.parametrize(
    "source",
    [
        delta(readChangeFeed="true"),
        StreamSource(SourceKind.KINESIS, "s"),
        StreamSource(SourceKind.OTHER, "s"),
    ],
)
def test_sources_without_rows_up_to_a_position(tmp_path: Path, source: StreamSource):
    """A change feed, and what can't be read as a batch: which rows came from them can't be determined."""
    with pytest.raises(BackfillNotPossible):
        read_so_far(position(tmp_path, (source, {"reservoirVersion": 5, **WHOLE})), "f")


def versions(first: int, last: int) -> BackfillRange:
    """A range of versions."""
    return BackfillRange(RangeKind.VERSION, first, last)


def offsets(first: dict[str, Any], last: dict[str, Any]) -> BackfillRange:
    """A range of offsets."""
    return BackfillRange(RangeKind.OFFSET, first, last)


def times(first: datetime, last: datetime) -> BackfillRange:
    """A range of file times."""
    return BackfillRange(RangeKind.FILE_TIME, first, last)


def test_a_part_of_a_table(tmp_path: Path):
    """The named versions, up to the newest there is."""
    for _ in range(3):
        commit(tmp_path / "t")
    one = start(tmp_path, delta(tmp_path / "t", readChangeFeed="true"))
    assert chosen_part(versions(1, 2), one) == (DeltaLimit(tmp_path / "t", 1, 2, changes=True),)
    with pytest.raises(InvalidRange, match="up to 2"):
        chosen_part(versions(1, 3), one)


def test_a_part_of_a_topic_or_a_folder(tmp_path: Path):
    """The named offsets, and the files of the named times."""
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    (limit,) = chosen_part(offsets({"a": {"0": 1}}, {"a": {"0": 5}}), start(tmp_path, kafka()))
    assert limit == KafkaLimit((("subscribe", "b,a"),), '{"a": {"0": 1}}', '{"a": {"0": 5}}')
    (limit,) = chosen_part(times(first, last), start(tmp_path, files(tmp_path)))
    assert limit == FilesLimit(str(tmp_path), None, first, last)


@pytest.mark.parametrize(
    ("chosen", "sources"),
    [
        (versions(1, 1), ()),
        (versions(1, 1), (delta(), delta())),
        (versions(1, 1), (kafka(),)),
        (offsets({}, {}), (delta(),)),
        (offsets({}, {}), (files(Path("/in")),)),
        (times(datetime.now(UTC), datetime.now(UTC)), (kafka(),)),
    ],
)
def test_a_range_of_what_the_flow_does_not_read(tmp_path: Path, chosen, sources):
    """Versions are of one table, offsets of one read of topics, times of one folder."""
    with pytest.raises(InvalidRange, match="can't be filled by"):
        chosen_part(chosen, start(tmp_path, *sources))


def test_files_on_s3(tmp_path: Path):
    """They are known by their addresses: those that were read, however Spark encodes their names, and those of a time."""
    source = StreamSource(SourceKind.FILES, "f", path="s3://raw/in")
    folder = start(tmp_path, source).folder / "sources" / "0"
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"path": spark_uri(f"s3://raw/in/{name}"), "timestamp": 0, "batchId": 0})
        for name in ("a", "x y ü%41.json")
    ]
    (folder / "0").write_text("\n".join(["v1", *lines]))
    (limit,) = read_so_far(position(tmp_path, (source, {"logOffset": 0})), "f")
    assert limit == FilesLimit("s3://raw/in", frozenset({"s3://raw/in/a", "s3://raw/in/x y ü%41.json"}))
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert chosen_part(times(first, last), start(tmp_path, source)) == (
        FilesLimit("s3://raw/in", None, first, last),
    )


def test_files_that_are_examined_once_more(tmp_path: Path):
    """Those that the stream has read, and where times are the limit all that are there, at any depth."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("a", "deep/b"):
        (tmp_path / "in" / name).touch()
    seen_before = FilesLimit("/x", frozenset({"/x/1"}))
    by_time = FilesLimit(str(tmp_path / "in"), None, datetime.now(UTC), datetime.now(UTC))
    there = {str(tmp_path / "in" / name) for name in ("a", "deep/b")}
    assert read_again((seen_before, by_time, DeltaLimit(Path("/t"), None, 1))) == there | {"/x/1"}


def test_everything_before_a_stream_that_begins_there(tmp_path: Path):
    """Versions before the one where the stream begins, offsets before its first."""
    assert everything(delta(), {"reservoirVersion": 5}) == DeltaLimit(Path("/t"), None, 4)
    assert everything(kafka(), {"a": {"0": 3}}) == KafkaLimit(
        (("subscribe", "b,a"),), "earliest", '{"a": {"0": 3}}'
    )


def verdict(chosen: BackfillRange, one: FlowStart, end: Any, *, appends: bool = True) -> str:
    """What becomes of a range: ``fine``, or the words that say why not."""
    assert one.sources is not None
    at = LivePosition(one.sources, (end,), 0, (), one.folder)
    try:
        check_overlap(chosen, one, at, appends=appends)
    except RangeNotReadYet as error:
        return f"not read yet: {error.what.partition('not read ')[2].partition(' yet')[0]}"
    except RangeAlreadyWritten as error:
        return f"written: {error.what.partition('has read ')[2].partition(': ')[0]}"
    return "fine"


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_versions_against_the_position(end, unread, begun, appends):
    """What the stream will bring is not brought before it; what it has brought is not added once more."""
    source = delta(startingVersion=str(begun))
    one = start(Path("/none"), source)
    position = {"reservoirVersion": unread, **WHOLE}
    answer = verdict(versions(0, end), one, position, appends=appends)
    if end >= unread:
        assert answer == f"not read yet: versions from {unread} on"
    elif end >= begun and appends:
        assert answer == f"written: versions from {begun} on"
    else:
        assert answer == "fine"


@pytest.mark.parametrize("option", [{}, {"startingTimestamp": "2026-01-01"}, {"startingVersion": "latest"}])
def test_a_stream_whose_beginning_is_not_a_number(tmp_path: Path, option: dict[str, str]):
    """It may have read any version before its position: none is added once more."""
    answer = verdict(versions(0, 0), start(tmp_path, delta(**option)), {"reservoirVersion": 1, **WHOLE})
    assert answer == "written: versions from 0 on"


def begun_at(tmp_path: Path, offsets: Any) -> None:
    """Lay down where a Kafka source began."""
    folder = start(tmp_path).folder / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "0").write_text("\0v1\n" + json.dumps(offsets))


@pytest.mark.parametrize(
    ("last", "appends", "expected"),
    [
        ({"a": {"0": 3}}, True, "fine"),  # before the stream began
        ({"a": {"0": 4}}, True, "written: a[0] from 3 on"),
        ({"a": {"0": 4}}, False, "fine"),
        ({"a": {"0": 8}}, False, "fine"),
        ({"a": {"0": 9}}, False, "not read yet: a[0] from 8 on"),
        ({"a": {"0": 3, "1": 1}}, False, "not read yet: a[1] from 0 on"),
        ({"a": {"0": 3}, "b": {"2": 1}}, True, "not read yet: b[2] from 0 on"),
    ],
)
def test_offsets_against_the_position(tmp_path: Path, last, appends, expected):
    """By partition: the stream began at 3 and stands at 8; a partition it does not know is still to come."""
    begun_at(tmp_path, {"a": {"0": 3}})
    one = start(tmp_path, kafka())
    assert verdict(offsets({}, last), one, {"a": {"0": 8}}, appends=appends) == expected


@pytest.mark.parametrize("state", [{"first_batch": 1}, {"epoch": 1}])
def test_a_stream_that_was_laid_down_at_a_position(tmp_path: Path, state: dict[str, int]):
    """Where its checkpoint began says nothing of what earlier epochs had read: all may have come."""
    begun_at(tmp_path, {"a": {"0": 3}})
    one = start(tmp_path, kafka(), **state)
    if "epoch" in state:
        folder = one.folder / "sources" / "0"
        folder.mkdir(parents=True)
        (folder / "0").write_text("\0v1\n" + json.dumps({"a": {"0": 3}}))
    assert verdict(offsets({}, {"a": {"0": 3}}), one, {"a": {"0": 8}}) == "written: a[0] from 0 on"


def test_files_against_the_position(tmp_path: Path):
    """Of the files of the range: those taken in are written, those the stream will take in are still to come; those it leaves
    out are neither. Other ranges are free.
    """
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(("read", "new", "left", "late")):
        (folder / name).write_text("x")
        os.utime(folder / name, ns=(0, (100 + number) * 1_000_000_000))
    seen(tmp_path, 0, (f"{folder}/read", 0), (f"{folder}/new", 1))
    one = start(tmp_path, files(folder))
    one.checkpoint.folder.joinpath("existing-0-x.json").write_text(json.dumps([f"{folder}/left"]))

    def at(first: float, last: float) -> BackfillRange:
        return times(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC))

    end = {"logOffset": 0}
    assert verdict(at(100, 101), one, end) == f"written: {folder}/read"
    assert verdict(at(100, 101), one, end, appends=False) == "fine"
    assert verdict(at(101, 102), one, end) == f"not read yet: {folder}/new"
    assert verdict(at(102, 103), one, end) == "fine"
    assert verdict(at(101, 104), one, end) == f"not read yet: 2 files of it (one is {folder}/late)"
    assert verdict(at(100, 101), one, None) == f"not read yet: {folder}/read"
    assert verdict(at(100.001, 101), one, end) == "fine"
    assert verdict(at(99, 100), one, end) == "fine"


def test_files_that_the_stream_is_told_to_leave_out(tmp_path: Path):
    """A file outside of the stream's own times is none that it will bring, or has brought: it may be filled."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "old").write_text("x")
    os.utime(folder / "old", ns=(0, 100 * 1_000_000_000))
    one = start(tmp_path, files(folder, modifiedAfter="2020-01-01T00:00:00"))
    chosen = times(datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(1000, UTC))
    assert verdict(chosen, one, None) == "fine"
