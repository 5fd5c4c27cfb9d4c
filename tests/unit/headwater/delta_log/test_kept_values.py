"""delta-rs rewrites only what it writes again as it is; the rest is left to Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.maintenance.chore import Engine
from headwater.maintenance.file_layout import Optimize

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")


def engine(table: Path, column: pa.Array, greatest: Mapping[str, Any] | None = None) -> Engine:
    """Who would put four small files of a column together. ``greatest``: other bounds than delta-rs wrote, as Spark has them."""
    for _ in range(4):
        write_deltalake(str(table), pa.table({"id": [1], "c": column}), mode="append")
    if greatest is not None:
        log = table / "_delta_log" / f"{3:020d}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        (added,) = (action["add"] for action in actions if "add" in action)
        bounds = json.loads(added["stats"])
        bounds["maxValues"] |= greatest
        added["stats"] = json.dumps(bounds)
        log.write_text("\n".join(map(json.dumps, actions)) + "\n")
    return Optimize("t", table, {}).look().engine


@pytest.mark.parametrize(
    ("column", "greatest"),
    [
        (pa.array([NOW], TIME), None),
        (pa.array([None], TIME), None),
        (pa.array([1.5]), None),
        (pa.array([Decimal("1.50")], pa.decimal128(15, 2)), None),
        (pa.array([[1.5]]), None),
        (pa.array(["text"]), None),
    ],
    ids=str,
)
def test_ordinary_values_need_no_driver(tmp_path: Path, column: pa.Array, greatest: Mapping[str, Any] | None):
    """Times of our age, numbers and texts are rewritten without Spark."""
    assert engine(tmp_path / "t", column, greatest) is Engine.HERE


@pytest.mark.parametrize(
    ("column", "greatest"),
    [
        (pa.array([NOW], TIME), {"c": "9999-12-31T23:59:59.999Z"}),
        (pa.array([NOW], TIME), {"c": None}),
        (pa.array([{"t": NOW}], pa.struct([("t", TIME)])), {"c": {"t": "9999-12-31T00:00:00.000Z"}}),
        (pa.array([[NOW]], pa.list_(TIME)), None),
        (pa.array([1.5]), {"c": "NaN"}),
        (pa.array([Decimal("1.50")], pa.decimal128(18, 2)), None),
    ],
    ids=str,
)
def test_values_that_would_become_others_are_sparks(
    tmp_path: Path, column: pa.Array, greatest: Mapping[str, Any] | None
):
    """The end of time, NaN, long decimals, and times whose bounds nobody knows: a driver rewrites them."""
    assert engine(tmp_path / "t", column, greatest) is Engine.SPARK


def test_what_delta_rs_makes_of_old_times(tmp_path: Path):
    """Why: a time of the year 9999 in Parquet's old form is one of 1816 after a compaction. Where this fails, the rule can be loosened."""
    table = tmp_path / "t"
    times = pa.table({"c": pa.array([datetime(9999, 12, 31, tzinfo=UTC)], TIME)})
    for version in range(2):
        write_deltalake(str(table), times, mode="append")
        log = table / "_delta_log" / f"{version:020d}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for added in (action["add"] for action in actions if "add" in action):
            file = table / added["path"]
            pq.write_table(times, file, use_deprecated_int96_timestamps=True, store_schema=False)
            added["size"] = file.stat().st_size
        log.write_text("\n".join(map(json.dumps, actions)) + "\n")
    DeltaTable(str(table)).optimize.compact()
    (compacted,) = DeltaTable(str(table)).file_uris()
    years = {row["c"].year for row in pq.read_table(compacted).to_pylist()}
    assert years == {1816}
