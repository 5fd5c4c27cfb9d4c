"""AUTO CDC into tables whose structs have fields that are NOT NULL: whole values go in, others stop the flow."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.in_step import Share, Steps, in_step
from tests.pipeline_case import UpdateReport

EVENTS = """
KEPT = "key INT, at INT, s STRUCT<a: INT NOT NULL, b: STRUCT<c: INT NOT NULL>>"
READ = "key INT, at INT, s STRUCT<a: INT, b: STRUCT<c: INT>>"
ENDS = ", __START_AT INT, __END_AT INT"

@dp.temporary_view
def events():
    return spark.readStream.schema(READ + ", op STRING").json(LANDING)

def followed(target, ends="", **options):
    dp.create_streaming_table(target, schema=KEPT + ends)
    dp.create_auto_cdc_flow(target, "events", ["key"], "at", apply_as_deletes="op = 'D'", except_column_list=["op"], **options)

followed("latest")
followed("history", ENDS, stored_as_scd_type=2)
followed("by_column", ignore_null_updates=True)
"""
SNAPSHOTS = """
KEPT = "key INT, s STRUCT<a: INT NOT NULL, b: STRUCT<c: INT NOT NULL>>"
READ = "key INT, s STRUCT<a: INT, b: STRUCT<c: INT>>"
ENDS = ", __START_AT BIGINT, __END_AT BIGINT"

def following(latest):
    number = 1 if latest is None else latest + 1
    path = f"{LANDING}/{number:05d}.json"
    return (spark.read.schema(READ).json(path), number) if os.path.exists(path) else None

def followed(target, ends="", **options):
    dp.create_streaming_table(target, schema=KEPT + ends)
    dp.create_auto_cdc_from_snapshot_flow(target, following, ["key"], **options)

import os
followed("latest")
followed("history", ENDS, stored_as_scd_type=2)
"""


def whole(a: int, c: int) -> dict[str, Any]:
    """A struct with all that it must have."""
    return {"a": a, "b": {"c": c}}


def refused(case: Share, *tables: str) -> Generator[None, UpdateReport, None]:
    """An update whose rows lack what they must have fails, says which field, and writes nothing."""
    before = {table: case.version(table) for table in tables}
    report = yield
    assert report.statuses == dict.fromkeys(tables, "FAILED")
    for table in tables:
        assert "s.b.c" in str(report[table].error).replace("\n", ".")
        assert case.version(table) == before[table]
        log = DeltaTable(str(case.table(table))).schema().to_json()
        assert log.count('"nullable":false') == 2


def events(case: Share) -> Steps:
    """Both types, and one by column: inserted, changed, late and deleted rows; what lacks a field is refused."""
    case.rewrite(EVENTS)
    one, two, three, four = whole(1, 1), whole(2, 2), whole(3, 3), whole(4, 4)
    case.land([{"key": 1, "at": 10, "s": one}, {"key": 2, "at": 10, "s": two}, {"key": 3, "at": 5, "s": one}])
    assert (yield).state == "COMPLETED"
    # What a delete says of columns is not looked at.
    delete = {"key": 2, "at": 20, "op": "D", "s": {"b": {}}}
    case.land([{"key": 1, "at": 20, "s": four}, delete, {"key": 3, "at": 1, "s": two}])
    case.land([{"key": 1, "at": 15, "s": three}])
    report = yield
    assert report.state == "COMPLETED", report.error
    latest = [(1, 20, four), (3, 5, one)]
    assert case.rows("latest") == latest
    assert case.rows("by_column") == latest
    assert case.rows("history", order='key, "__START_AT"') == [
        (1, 10, one, 10, 15),
        (1, 15, three, 15, 20),
        (1, 20, four, 20, None),
        (2, 10, two, 10, 20),
        (3, 1, two, 1, 5),
        (3, 5, one, 5, None),
    ]
    case.land([{"key": 4, "at": 1, "s": {"a": 1, "b": {}}}])
    yield from refused(case, "latest", "history", "by_column")


def snapshots(case: Share) -> Steps:
    """Both types: new, changed and missing rows; what lacks a field is refused."""
    case.rewrite(SNAPSHOTS)
    one, two, three = whole(1, 1), whole(2, 2), whole(3, 3)
    case.land([{"key": 1, "s": one}, {"key": 2, "s": one}])
    case.land([{"key": 1, "s": two}, {"key": 3, "s": three}])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert case.rows("latest") == [(1, two), (3, three)]
    assert case.rows("history", order='key, "__START_AT"') == [
        (1, one, 1, 2),
        (1, two, 2, None),
        (2, one, 1, 2),
        (3, three, 2, None),
    ]
    case.land([{"key": 1, "s": two}, {"key": 4, "s": {"a": 1, "b": {}}}])
    yield from refused(case, "latest", "history")


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("pipeline")
def test_what_lacks_a_field_is_refused(tmp_path: Path):
    """Events and snapshots, in both types and by column: what the docstrings say."""
    in_step(tmp_path, ("latest", "history", "by_column", "events"), [events, snapshots])
