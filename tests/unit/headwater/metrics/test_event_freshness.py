"""The newest event of a table is known from its log, or said not to be known."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.metrics import event_freshness
from headwater.metrics.event_freshness import table_event_freshness
from headwater.storage.conditions import StoreRefused

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)


def write(table: Path, *times: object, **options: object) -> None:
    """Append a file of events."""
    write_deltalake(
        str(table), pa.table({"id": [1] * len(times), "at": list(times)}), mode="append", **options
    )  # type: ignore[call-overload]


def test_the_newest_event_of_all_files(tmp_path: Path):
    """However late it was committed; NULLs and files of NULLs do not count."""
    write(tmp_path, NOW - 3 * HOUR, NOW - HOUR)
    write(tmp_path, NOW - 2 * HOUR, None)
    freshness = table_event_freshness(tmp_path, "events", "at")
    assert freshness.newest == (NOW - HOUR).timestamp()
    assert freshness.seconds == pytest.approx(time.time() - freshness.newest, abs=5)
    assert freshness.unknown == ""


def test_events_of_the_future(tmp_path: Path):
    """A clock that is ahead gives an age of nothing, not less."""
    write(tmp_path, NOW + HOUR)
    assert table_event_freshness(tmp_path, "events", "at").seconds == 0


def test_nothing_yet(tmp_path: Path):
    """No table, and a table without an event, have no age and no trouble."""
    for make in (
        lambda: None,
        lambda: write(tmp_path, None, NOW),
        lambda: DeltaTable(str(tmp_path)).delete(),
    ):
        before = table_event_freshness(tmp_path, "events", "at")
        make()
    assert (before.newest, before.unknown) == (NOW.timestamp(), "")
    empty = table_event_freshness(tmp_path, "events", "at")
    assert (empty.newest, empty.seconds, empty.unknown) == (None, None, "")
    assert table_event_freshness(tmp_path / "nowhere", "events", "at") == type(empty)("events", "at")


def test_a_column_without_statistics(tmp_path: Path):
    """It is not known, unless other files have some: files of before the column was there have none."""
    write(tmp_path, NOW)
    assert "no file has statistics of other" in table_event_freshness(tmp_path, "events", "other").unknown
    rows = pa.table({"id": [2], "other": [NOW - HOUR]})
    write_deltalake(str(tmp_path), rows, mode="append", schema_mode="merge")
    assert table_event_freshness(tmp_path, "events", "other").newest == (NOW - HOUR).timestamp()


def test_other_types(tmp_path: Path):
    """A date is its midnight, of a partition too; a number is no time."""
    day = date(2026, 1, 2)
    write(tmp_path / "a", day)
    write(tmp_path / "b", day, partition_by=["at"])
    midnight = datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    assert table_event_freshness(tmp_path / "a", "events", "at").newest == midnight
    assert table_event_freshness(tmp_path / "b", "events", "at").newest == midnight
    assert "is no time" in table_event_freshness(tmp_path / "a", "events", "id").unknown


@settings(max_examples=15, deadline=None)
@given(files=st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), min_size=1, max_size=4))
def test_as_a_query(tmp_path_factory: pytest.TempPathFactory, files: list[list[int]]):
    """Whatever lies in which file: it is the greatest time."""
    table = tmp_path_factory.mktemp("t")
    for file in files:
        write(table, *(NOW - timedelta(seconds=second) for second in file))
    newest = min(second for file in files for second in file)
    assert (
        table_event_freshness(table, "events", "at").newest == (NOW - timedelta(seconds=newest)).timestamp()
    )


def test_a_store_that_denies_access(monkeypatch: pytest.MonkeyPatch):
    """It is said of this table alone; what else is looked at is not in its way."""

    def denied(*_: object) -> DeltaTable:
        raise StoreRefused("The object store denies access.")

    monkeypatch.setattr(event_freshness, "delta_table", denied)
    assert "denies access" in table_event_freshness(Path("events"), "events", "at").unknown
