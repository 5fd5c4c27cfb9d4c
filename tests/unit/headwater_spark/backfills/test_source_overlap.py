"""A range of a source is neither written twice nor ahead of the stream, to the last version, offset and millisecond."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.backfills.backfill_range import BackfillRange, RangeKind
from headwater.backfills.conditions import RangeAlreadyWritten, RangeNotReadYet
from headwater_spark.backfills import source_overlap as module
from headwater_spark.backfills.source_overlap import check_overlap


def outcome(chosen: BackfillRange, end: Any, *, appends: bool = True, **start: Any) -> str:
    """What stands against a range where the stream's one source stands at ``end``; nothing where that is an empty text."""
    options = start.pop("options", {})
    source = SimpleNamespace(name="events", options=options, path="landing", table=None)
    state = SimpleNamespace(first_batch=start.pop("first_batch", 0), epoch=start.pop("epoch", 0))
    flow: Any = SimpleNamespace(
        flow="bronze", state=state, folder=Path("epoch"), checkpoint=SimpleNamespace(folder=Path("flow"))
    )
    position: Any = SimpleNamespace(sources=(source,), ends=(end,))
    try:
        check_overlap(chosen, flow, position, appends=appends)
    except RangeNotReadYet as error:
        return f"unread: {error.what}"
    except RangeAlreadyWritten as error:
        return f"read: {error.what}"
    return ""


def versions(first: int, last: int) -> BackfillRange:
    """Both are part of it."""
    return BackfillRange(RangeKind.VERSION, first, last)


@pytest.mark.parametrize(
    ("last", "began", "against"),
    [
        (4, "5", ""),
        (5, "5", "read"),
        (9, "5", "read"),
        (10, "5", "unread"),
        (4, None, "read"),
        (0, "latest", "read"),
    ],
)
def test_versions(last: int, began: str | None, against: str):
    """The stream goes on at version 10: before its first one, rows are nobody's; from it on they are its own."""
    end = {"reservoirVersion": 10, "index": -1}
    options = {} if began is None else {"StartingVersion": began}
    assert outcome(versions(0, last), end, options=options).partition(":")[0] == against


def test_rows_that_are_replaced_may_have_been_read():
    """Only what is appended would be there twice; what is not read yet would be, either way."""
    end = {"reservoirVersion": 10, "index": -1}
    assert outcome(versions(0, 9), end, appends=False) == ""
    assert outcome(versions(0, 10), end, appends=False).startswith("unread")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of Kafka that began at offset 100."""
    monkeypatch.setattr(module, "kafka_initial_offset", lambda _: {"t": {"0": 100}})


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(("last", "against"), [(100, ""), (101, "read"), (500, "read"), (501, "unread")])
def test_offsets(last: int, against: str):
    """The end of a range is the next offset: up to where the stream began nothing is its own, behind where it stands all is to come."""
    chosen = BackfillRange(RangeKind.OFFSET, {"t": {"0": 0}}, {"t": {"0": last}})
    assert outcome(chosen, {"t": {"0": 500}}).partition(":")[0] == against


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize("started", [{"first_batch": 3}, {"epoch": 1}])
def test_offsets_of_a_stream_that_began_before(started: dict[str, int]):
    """Where an epoch was seeded, or is not the first, its first offsets are not those of the flow: it may have read all before."""
    chosen = BackfillRange(RangeKind.OFFSET, {"t": {"0": 0}}, {"t": {"0": 50}})
    assert outcome(chosen, {"t": {"0": 500}}) == ""
    assert outcome(chosen, {"t": {"0": 500}}, **started).startswith("read")


def test_partitions_that_the_stream_does_not_know():
    """They are to come, from their first offset on."""
    chosen = BackfillRange(RangeKind.OFFSET, {"t": {"1": 0}}, {"t": {"1": 5}})
    assert "t[1] from 0 on" in outcome(chosen, {"t": {"0": 500}}, epoch=1)


START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("millis", "seen", "skipped", "against"),
    [
        (0, False, False, "unread"),
        (-1, False, False, ""),
        (86_399_999, False, False, "unread"),
        (86_400_000, False, False, ""),
        (0, True, False, "read"),
        (0, False, True, ""),
    ],
)
def test_files(monkeypatch: pytest.MonkeyPatch, millis: int, seen: bool, skipped: bool, against: str):
    """By the millisecond of their last change, from the first on and before the second; what the stream was to skip is nobody's."""
    file = SimpleNamespace(path="a.json", modified_ns=(int(START.timestamp()) * 1000 + millis) * 1_000_000)
    monkeypatch.setattr(module, "list_files", lambda *_: [file])
    monkeypatch.setattr(module, "paths_seen", lambda *_: {"a.json"} if seen else set())
    monkeypatch.setattr(module, "_excluded", lambda _: {"a.json"} if skipped else set())
    chosen = BackfillRange(RangeKind.FILE_TIME, START, END)
    assert outcome(chosen, {"logOffset": 3}).partition(":")[0] == against
