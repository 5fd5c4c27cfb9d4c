"""What a backfill reads of a stream's source: within its limit, and no row beyond."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater.backfills.conditions import BackfillNotPossible, RangeNotReadYet
from headwater_spark.backfills import bounded_sources as module
from headwater_spark.backfills.bounded_sources import BoundedSources
from headwater_spark.backfills.source_limits import DeltaLimit, FilesLimit, KafkaLimit, Limit
from headwater_spark.facade.source_substitutes import Moved, SourceRequest

FIRST, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
FILES = {
    "file:///in/a.json": FIRST,
    "file:/in/b.json": datetime(2026, 1, 15, tzinfo=UTC),
    "file:///in/c%20d.json": END,
}


class Reader:
    """In the place of Spark's reader: how it is called last, and rows with the files that they lie in."""

    calls: dict[str, Any]

    def __init__(self, _: Any = None) -> None:
        Reader.calls = {}

    def format(self, name: str) -> Self:
        Reader.calls["format"] = name
        return self

    def options(self, **given: str) -> Self:
        Reader.calls |= given
        return self

    def option(self, name: str, value: str) -> Self:
        Reader.calls[name] = value
        return self

    def schema(self, schema: Any) -> Self:
        Reader.calls["schema"] = schema
        return self

    def load(self, path: str | None = None) -> Frame:
        Reader.calls["path"] = path
        rows = [
            {"v": number, "_metadata": {"file_path": "file:///" + uri.partition(":")[2].lstrip("/"), "file_modification_time": time}}
            for number, (uri, time) in enumerate(FILES.items())
        ]  # fmt: skip
        return Frame(rows, ["v"])


def read(monkeypatch: pytest.MonkeyPatch, limit: Limit, request: SourceRequest) -> Any:
    """What a read gives; None where it is not one of a stream."""
    plain_functions(monkeypatch, module)
    monkeypatch.setattr(module, "DataFrameReader", Reader)
    monkeypatch.setattr(module, "input_files", lambda _: list(FILES))
    monkeypatch.setattr(module, "added_rows", lambda *given, **named: (given[1:], named))
    evaluation: Any = SimpleNamespace(state_folder=Path("/s"))
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda _: "Asia/Tokyo"))
    return BoundedSources(evaluation, [limit]).source(request, session)


def files(**options: str) -> SourceRequest:
    return SourceRequest("json", "/in/", True, options, bounded=True)


def test_files_of_a_time(monkeypatch: pytest.MonkeyPatch):
    """From the first moment on, before the second; the limit's options are none of a batch."""
    rows = read(
        monkeypatch, FilesLimit("file:/in", None, FIRST, END), files(maxfilespertrigger="1", multiline="true")
    )
    assert [row["v"] for row in rows.rows] == [0, 1]
    assert Reader.calls == {"format": "json", "multiline": "true", "path": "/in/"}


def test_files_that_the_stream_has_read(monkeypatch: pytest.MonkeyPatch):
    """No others, however Spark spells their names."""
    seen = frozenset({"/in/a.json", "/in/c d.json"})
    rows = read(monkeypatch, FilesLimit("/in", seen), files())
    assert [row["v"] for row in rows.rows] == [0, 2]
    assert len(read(monkeypatch, FilesLimit("/in", frozenset(seen | {"/in/b.json"})), files()).rows) == 3


def test_cloud_files(monkeypatch: pytest.MonkeyPatch):
    """Their range begins with its first moment; where the stream has not read all that is there, nothing is read."""
    request = SourceRequest("cloudfiles", "/in", True, {}, bounded=True)
    moved = read(monkeypatch, FilesLimit("/in", None, FIRST, END), request)
    assert moved == Moved("/in", {"modifiedAfter": "2025-12-31T23:59:59.999999+00:00", "modifiedBefore": END.isoformat()})  # fmt: skip
    with pytest.raises(RangeNotReadYet):
        read(monkeypatch, FilesLimit("/in", frozenset({"/in/a.json"})), request)
    seen = frozenset({"/in/a.json", "/in/b.json", "/in/c d.json"})
    assert read(monkeypatch, FilesLimit("/in", seen), request) == Moved("/in")


@pytest.mark.parametrize(
    ("limit", "calls", "rows"),
    [
        (DeltaLimit(Path("/t"), None, 4), {"versionAsOf": "4"}, 3),
        (DeltaLimit(Path("/t"), None, 0), {"versionAsOf": "0"}, 3),
        (DeltaLimit(Path("/t"), None, -1), {"versionAsOf": "0"}, 0),  # the stream has read nothing yet
        (
            DeltaLimit(Path("/t"), 2, 4, changes=True),
            {"readChangeFeed": "true", "startingVersion": "2", "endingVersion": "4"},
            3,
        ),
    ],
)
def test_versions_of_a_table(monkeypatch: pytest.MonkeyPatch, limit: DeltaLimit, calls: Any, rows: int):
    """All rows of one version, or the changes of some."""
    given = read(monkeypatch, limit, SourceRequest("delta", "/t", True, bounded=True))
    assert len(given.rows) == rows
    assert Reader.calls == {"format": "delta", "path": "/t", **calls}


def test_rows_that_versions_added(monkeypatch: pytest.MonkeyPatch):
    """Both versions are part of the range; commits that the stream skips are skipped."""
    limit = DeltaLimit(Path("/t"), 2, 4, skips_changes=True)
    given = read(monkeypatch, limit, SourceRequest("delta", "/t", True, bounded=True))
    assert given == ((Path("/t"), 2, 4), {"skip_changes": True})


def test_offsets_of_a_topic(monkeypatch: pytest.MonkeyPatch):
    """The partitions that the limit names, and no others; without any, no row. Times among the options are the session's."""
    topics = (("subscribe", "t"),)
    options = {"subscribe": "t", "startingoffsets": "latest", "kafka.bootstrap.servers": "b"}
    request = SourceRequest("kafka", None, True, options, bounded=True)
    start, end = '{"t": {"0": 5, "3": 1}}', '{"t": {"3": 9, "0": 8}}'
    zones: list[str] = []
    monkeypatch.setattr(module, "kafka_overrides", lambda _, zone: zones.append(zone) or {})
    assert len(read(monkeypatch, KafkaLimit(topics, start, end), request).rows) == 3
    assert json.loads(Reader.calls.pop("assign")) == {"t": [0, 3]}
    assert Reader.calls == {
        "format": "kafka", "path": None, "kafka.bootstrap.servers": "b", "startingOffsets": start, "endingOffsets": end,
    }  # fmt: skip
    assert read(monkeypatch, KafkaLimit(topics, "earliest", "{}"), request).rows == []
    assert set(zones) == {"Asia/Tokyo"}


def test_a_source_without_a_limit(monkeypatch: pytest.MonkeyPatch):
    """A batch is read as ever; a stream of which it is not known how far it was read is refused."""
    limit = FilesLimit("/in")
    assert read(monkeypatch, limit, SourceRequest("json", "/in", False)) is None
    for request in (
        SourceRequest("json", "/other", True, bounded=True), SourceRequest("delta", "/t", True, bounded=True),
        SourceRequest("rate", "/in", True, bounded=True),
    ):  # fmt: skip
        with pytest.raises(BackfillNotPossible):
            read(monkeypatch, limit, request)
