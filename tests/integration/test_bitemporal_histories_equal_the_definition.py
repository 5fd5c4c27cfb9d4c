"""Bitemporal histories: in whatever order and cut events arrive, a target has what its definition gives of all events so far."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headwater.testing.auto_cdc import expected_bitemporal
from headwater_spark.auto_cdc import merge_bitemporal

SOURCE = """
@dp.temporary_view
def events():
    return spark.readStream.schema("id LONG, v STRING, w LONG, at LONG, known LONG, op STRING").json(LANDING)

dp.create_streaming_table("filled")
dp.create_auto_cdc_flow("filled", "events", ["id"], F.struct("at", "id"), apply_as_deletes="op = 'D'", column_list=["id", "v", "w"],
    stored_as_scd_type="bitemporal", system_sequence_by="known", name="into_filled", ignore_null_updates=True,
    track_history_column_list=["v"])

@dp.materialized_view
def now():
    return dp.read("plain_current").select("id", "v", "w")

@dp.materialized_view
def versions():
    return dp.read("plain_versions").select("id", "v", "w", "valid_from", "valid_to", "known_from", "known_to")
"""
SQL = """
CREATE OR REFRESH STREAMING TABLE plain TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
CREATE FLOW into_plain AS AUTO CDC INTO plain FROM STREAM(events) KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at
  SYSTEM SEQUENCE BY known COLUMNS * EXCEPT (op, at, known) STORED AS BITEMPORAL;
"""
MORE: dict[str, dict[str, Any]] = {
    "plain": {"column_list": ["id", "v", "w"]},
    "filled": {
        "column_list": ["id", "v", "w"],
        "ignore_null_updates": True,
        "track_history_column_list": ["v"],
    },
}


def rows_of(pick: random.Random, count: int, keys: int) -> list[dict[str, Any]]:
    """Events of few keys and moments, so that many are late, corrected, deleted or the same."""
    return [
        {
            "id": pick.randrange(keys), "v": pick.choice(["a", "b", None]), "w": pick.choice([1, 2, None]),
            "at": pick.randrange(6), "known": pick.randrange(8), "op": "D" if pick.random() < 0.2 else "U",
        }
        for _ in range(count)
    ]  # fmt: skip


def test_any_order(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of several updates, with repeated events and a crash between the two commits of a batch among them, every target is
    what its definition gives of all events so far; so are its views.
    """
    case = pipeline(SOURCE, files={"transformations/more.sql": SQL})
    pick = random.Random(7)
    sent: list[dict[str, Any]] = []
    for count, keys, crashes in ((40, 6, False), (25, 8, True)):
        batch = rows_of(pick, count, keys) + pick.sample(sent, min(len(sent), 4))
        sent += batch
        case.land(batch)
        if crashes:
            with monkeypatch.context() as crash:
                crash.setattr(merge_bitemporal, "_merge", _dies)
                assert case.update(tables=("plain",)).state == "FAILED"
        # The views are looked at in the end.
        report = case.update(**({} if crashes else {"tables": tuple(MORE)}))
        assert report.state == "COMPLETED", report.error
        for name, more in MORE.items():
            assert rows_in(case, name, more["column_list"]) == wanted(sent, more), (name, len(sent))
    plain = wanted(sent, MORE["plain"])
    assert sorted(map(repr, case.rows("versions"))) == plain
    current = [row[:3] for row in case.rows("plain") if row[4] is None and row[6] is None]
    assert sorted(map(repr, case.rows("now"))) == sorted(map(repr, current))


def wanted(sent: list[dict[str, Any]], more: dict[str, Any]) -> list[str]:
    """The rows that the definition gives."""
    rows = expected_bitemporal(
        sent, keys=["id"], sequence_by="at", system_sequence_by="known", apply_as_deletes=lambda row: row["op"] == "D", **more
    )  # fmt: skip
    return sorted(repr(tuple(row.values())) for row in rows)


def rows_in(case: Any, name: str, columns: list[str]) -> list[str]:
    """The rows of a target; of a sequence that is a struct its first field."""
    ends = "__START_AT.at, __END_AT.at" if name == "filled" else "__START_AT, __END_AT"
    rows = case.rows(name, f"{', '.join(columns)}, {ends}, __SYSTEM_START_AT, __SYSTEM_END_AT")
    return sorted(map(repr, rows))


def _dies(*_: object) -> None:
    raise RuntimeError("the driver dies here")
