"""A watermark follows the newest event, and a window's row is written when the watermark has passed its end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.in_step import Share, Steps, in_step

from headwater.metrics.lateness import late_rows

WINDOWS = """
def events(folder="events"):
    rows = spark.readStream.schema("id INT, at TIMESTAMP, category STRING, amount INT").option("maxFilesPerTrigger", 1)
    return rows.json(LANDING + "/" + folder).withWatermark("at", "10 minutes")

def clock(column):
    return F.date_format(column, "HH:mm:ss")

@dp.table
def plain():
    return events().select("id")

@dp.table
def tumbling():
    windows = events().groupBy(F.window("at", "5 minutes"), "category").agg(
        F.sum("amount").alias("revenue"), F.count("*").alias("n"))
    return windows.select(clock("window.start").alias("start"), "category", "revenue", "n")

@dp.table
def sliding():
    windows = events().groupBy(F.window("at", "5 minutes", "1 minute")).agg(F.sum("amount").alias("revenue"))
    return windows.select(clock("window.start").alias("start"), "revenue")

@dp.table
def distinct_rows():
    return events().dropDuplicates(["id", "at"]).select("id")

@dp.table
def lagging():
    return events("others").groupBy(F.window("at", "5 minutes")).count().select(clock("window.start").alias("start"), "count")
"""
SESSIONS = """
def clock(column):
    return F.date_format(column, "HH:mm:ss.SSSSSS")

@dp.table
def sessions():
    events = spark.readStream.schema("user STRING, at TIMESTAMP, page STRING").json(LANDING).withWatermark("at", "10 minutes")
    found = events.groupBy("user", F.session_window("at", "30 minutes")).agg(
        F.min("at").alias("first"), F.max("at").alias("last"), F.count("*").alias("n"), F.collect_list("page").alias("pages"))
    pages = F.concat_ws("", F.sort_array("pages")).alias("pages")
    return found.select("user", clock("first").alias("session_start"), clock("session_window.end").alias("session_end"), "n", pages)
"""


def seconds(clock: str) -> int:
    """The seconds of a time of day."""
    hours, minutes, rest = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(rest)


def event(number: int, clock: str, category: str = "a", amount: int = 0) -> dict[str, object]:
    """A row at a time of day."""
    return {"id": number, "at": f"2026-01-01 {clock}", "category": category, "amount": amount}


def sliding_sums(rows: list[tuple[str, int, str]], watermark: str) -> list[tuple[str, int]]:
    """Sums of the closed windows of 5 minutes, one a minute, over (time, amount, watermark at arrival)."""
    sums: Counter[int] = Counter()
    for clock, amount, late in rows:
        newest = seconds(clock) // 60 * 60
        for start in range(newest - 240, newest + 1, 60):
            if start + 300 > seconds(late):
                sums[start] += amount
    closed = {start: amount for start, amount in sums.items() if start + 300 <= seconds(watermark)}
    return [(f"{s // 3600:02}:{s // 60 % 60:02}:00", amount) for s, amount in sorted(closed.items())]


def ten_minutes_behind(case: Share) -> Steps:
    """Newest 10:30, so the watermark is 10:20: earlier windows are written, earlier rows left out where state is kept."""
    case.rewrite(WINDOWS)
    early = [event(1, "10:02:00", "a", 1), event(2, "10:14:00", "a", 2), event(3, "10:16:00", "b", 4)]
    case.land([*early, event(4, "10:30:00", "a", 8)], "events")
    case.land([event(1, "10:30:00")], "others")
    case.land([event(2, "10:01:00")], "others")
    case.land([event(3, "10:02:00")], "others")
    report = yield
    assert report.state == "COMPLETED", report.error
    closed = [("10:00:00", "a", 1, 1), ("10:10:00", "a", 2, 1), ("10:15:00", "b", 4, 1)]
    assert case.rows("tumbling") == closed
    first = [("10:02:00", 1, "00:00:00"), ("10:14:00", 2, "00:00:00"), ("10:16:00", 4, "00:00:00")]
    assert case.rows("sliding") == sliding_sums(first, "10:20:00")
    assert [amount for _, amount in case.rows("sliding")][:5] == [1] * 5, "a row counts in five windows"
    # The second batch still goes by the watermark before the first one, the third by that of the first.
    assert case.rows("lagging") == [("10:00:00", 1)]

    case.land(
        [event(5, "10:19:59", "a", 16), event(6, "10:20:00", "a", 32), event(7, "10:31:00", "b", 64)],
        "events",
    )
    assert (yield).state == "COMPLETED"
    assert case.rows("tumbling") == closed
    case.land([event(8, "10:50:00")], "events")
    assert (yield).state == "COMPLETED"
    assert case.rows("tumbling") == [
        *closed,
        ("10:20:00", "a", 32, 1),
        ("10:30:00", "a", 8, 1),
        ("10:30:00", "b", 64, 1),
    ]
    # A row that is late for one of its windows still counts in those that are open.
    later = [("10:30:00", 8, "00:00:00"), ("10:19:59", 16, "10:20:00"), ("10:20:00", 32, "10:20:00")]
    last = [("10:31:00", 64, "10:20:00")]
    assert case.rows("sliding") == sliding_sums([*first, *later, *last], "10:40:00")
    assert case.rows("plain") == [(n,) for n in range(1, 9)], "without state nothing is late"
    # A time of its own is late at the watermark already: 10:20:00 was a window's row in time, and is none here.
    assert case.rows("distinct_rows") == [(1,), (2,), (3,), (4,), (7,), (8,)]
    left_out = late_rows(case.project().state_folder)
    assert {
        name: left_out.get(case.own(name), 0) for name in ("plain", "tumbling", "lagging", "distinct_rows")
    } == {
        "plain": 0,
        "tumbling": 1,
        "lagging": 1,
        "distinct_rows": 2,
    }


def sessions(case: Share) -> Steps:
    """A pause of just the gap joins, a microsecond more parts, and a late event can join two sessions into one."""
    case.rewrite(SESSIONS)

    def land(*events: tuple[str, str, str]) -> None:
        case.land([{"user": user, "at": f"2026-01-01 {clock}", "page": page} for user, clock, page in events])

    land(("a", "10:00:00", "x"), ("a", "10:30:00", "y"))
    land(("b", "10:00:00", "x"), ("b", "10:30:00.000001", "y"))
    land(("c", "10:05:00", "x"), ("c", "10:40:00", "z"))
    assert (yield).state == "COMPLETED"
    closed = ("b", "10:00:00.000000", "10:30:00.000000", 1, "x")
    assert case.rows("sessions") == [closed]
    land(("c", "10:30:00", "y"))
    assert (yield).state == "COMPLETED"
    assert case.rows("sessions") == [closed]
    land(("z", "13:00:00", "x"))
    assert (yield).state == "COMPLETED"
    assert case.rows("sessions") == [
        ("a", "10:00:00.000000", "11:00:00.000000", 2, "xy"),
        closed,
        ("b", "10:30:00.000001", "11:00:00.000001", 1, "y"),
        ("c", "10:05:00.000000", "11:10:00.000000", 3, "xyz"),
    ]


TABLES = ("plain", "tumbling", "sliding", "distinct_rows", "lagging", "sessions")


@pytest.mark.usefixtures("pipeline")
def test_windows_and_sessions(tmp_path: Path):
    """Windows, deduplication and sessions, update by update: what the docstrings say."""
    in_step(tmp_path, TABLES, [ten_minutes_behind, sessions])
