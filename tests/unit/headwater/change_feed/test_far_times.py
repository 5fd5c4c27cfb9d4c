"""Times that delta-rs would read as others are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.change_feed.change_range import ChangeRange, FeedPosition, range_after
from headwater.change_feed.reading import arrow_table
from headwater.errors import ChangeFeedBroken

NOW, NO_END = datetime(2026, 1, 31, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")


def append(table: Path, moment: datetime, *, old: bool) -> None:
    """Add a row with a time, in Parquet's old form as Spark writes it by default, or in microseconds."""
    rows = pa.table({"c": pa.array([moment], TIME)})
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(table), rows, mode="append", configuration=feed)
    if not old:
        return
    log = table / "_delta_log" / f"{DeltaTable(str(table)).version():020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (added,) = (action["add"] for action in actions if "add" in action)
    file = table / added["path"]
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    added["size"] = file.stat().st_size
    log.write_text("\n".join(map(json.dumps, actions)) + "\n")


def wanted(table: Path, after: int | None = None) -> ChangeRange:
    """The range from a version on, or all that the table holds."""
    position = None if after is None else FeedPosition(str(DeltaTable(str(table)).metadata().id), after)
    changes = range_after("shop.orders", table, position)
    assert changes is not None
    return changes


def refused(table: Path, after: int | None) -> str:
    """What is said of the range."""
    with pytest.raises(ChangeFeedBroken) as caught:
        arrow_table(table, wanted(table, after))
    return str(caught.value)


def test_a_time_that_would_be_another_is_refused(tmp_path: Path):
    """The end of time in the old form, in a snapshot, in what was added and in what was removed; the way out is named."""
    append(tmp_path, NOW, old=True)
    append(tmp_path, NO_END, old=True)
    said = [refused(tmp_path, None), refused(tmp_path, 0)]
    DeltaTable(str(tmp_path)).delete("true")
    said.append(refused(tmp_path, 1))
    for text in said:
        assert "'c' of shop.orders has times before 1678 or after 2261" in text
        assert 'form="spark"' in text


def test_times_that_stay_what_they_are_are_read(tmp_path: Path):
    """Microseconds of any year, the old form within nanoseconds, and a range that such a file has no part in."""
    append(tmp_path, NO_END, old=True)
    append(tmp_path, NOW, old=True)
    append(tmp_path, NO_END, old=False)
    rows = arrow_table(tmp_path, wanted(tmp_path, 0))
    assert sorted(rows["c"].to_pylist()) == [NOW, NO_END]
