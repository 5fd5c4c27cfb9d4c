"""Joins of streams, deduplication and windows give what a batch over the same rows gives, once the watermark has passed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.pipeline_case import PipelineCase
from tests.seeds import SEED

pytestmark = pytest.mark.usefixtures("adaptive")

BASE = """
def landed(folder, columns):
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(LANDING + "/" + folder)

def clicks():
    return landed("clicks", "click_id INT, click_time TIMESTAMP").withWatermark("click_time", "10 minutes")

def impressions():
    rows = landed("impressions", "impression_id INT, impression_time TIMESTAMP")
    return rows.withWatermark("impression_time", "10 minutes")

def seconds(name):
    midnight = F.unix_timestamp(F.lit("2026-01-01 00:00:00"))
    return (F.unix_timestamp(name) - midnight).cast("int").alias(name)

def joined(how):
    found = clicks().join(impressions(), F.expr('''
        click_id = impression_id AND click_time >= impression_time
        AND click_time <= impression_time + interval 5 minutes'''), how)
    return found.select("click_id", seconds("click_time"), seconds("impression_time"))

@dp.table
def inner():
    return joined("inner")

@dp.table
def outer():
    return joined("leftOuter")

@dp.table
def first_of_all():
    return landed("clicks", "click_id INT, click_time TIMESTAMP").dropDuplicates(["click_id"]).select("click_id")

@dp.table
def first_of_late():
    return clicks().dropDuplicatesWithinWatermark(["click_id"]).select("click_id", seconds("click_time"))
"""
WINDOWS = """
@dp.table
def windows():
    counts = clicks().groupBy(F.window("click_time", "5 minutes"), "click_id").count()
    return counts.select("click_id", seconds("window.start").alias("start"), "count")

@dp.table
def sessions():
    counts = clicks().groupBy(F.session_window("click_time", "3 minutes"), "click_id").count()
    return counts.select("click_id", seconds("session_window.start").alias("start"), seconds("session_window.end").alias("end"), "count")
"""
TABLES = ("inner", "outer", "first_of_all", "first_of_late")
# The ids of random rows.
RANDOM = range(100, 109)
Event = tuple[int, int]


def land(case, folder: str, events: Sequence[Event]) -> None:
    """Put events (id, seconds since midnight) into the folder of their stream."""
    kind = folder.removesuffix("s")
    case.land(
        [
            {
                f"{kind}_id": number,
                f"{kind}_time": f"2026-01-01 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}",
            }
            for number, at in events
        ],
        folder,
    )


def minutes(*events: tuple[int, int]) -> list[Event]:
    """Events by the minute."""
    return [(number, at * 60) for number, at in events]


def joined_rows(clicks: Sequence[Event], impressions: Sequence[Event]) -> list[tuple[int, int, int]]:
    """The inner join in plain Python."""
    return sorted(
        (click, at, shown) for click, at in clicks for number, shown in impressions
        if number == click and 0 <= at - shown <= 300
    )  # fmt: skip


def random_events(chance: random.Random, count: int) -> list[Event]:
    """Events out of order by less than the watermark's delay, some of them twice."""
    events: list[Event] = []
    now = 3600
    for _ in range(count):
        now += chance.randint(0, 120)
        recent = [event for event in events if now - event[1] < 500]
        again = recent and chance.random() < 0.2
        events.append(
            chance.choice(recent) if again else (chance.choice(RANDOM), now - chance.randint(0, 500))
        )
    return events


def sessions_of(events: Sequence[Event], gap: int) -> list[tuple[int, int, int, int]]:
    """Sessions in plain Python: id, start, end and number of events."""
    sessions: list[tuple[int, int, int, int]] = []
    for number, at in sorted(events):
        if sessions and sessions[-1][0] == number and at <= sessions[-1][2]:
            _, start, _, count = sessions.pop()
            sessions.append((number, start, at + gap, count + 1))
        else:
            sessions.append((number, at, at + gap, 1))
    return sessions


class RandomRows:
    """Random clicks and impressions of ids of their own, late and doubled, in random cuts: all before half past nine."""

    def __init__(self, case: PipelineCase) -> None:
        print(f"HEADWATER_SEED={SEED}")
        chance = random.Random(SEED)
        self.clicks, self.impressions = random_events(chance, 40), random_events(chance, 40)
        for folder, events in (("clicks", self.clicks), ("impressions", self.impressions)):
            cut = chance.randint(1, 39)
            land(case, folder, events[:cut])
            land(case, folder, events[cut:])

    def equal_the_batch(self, case: PipelineCase) -> None:
        """Far later rows have closed all that came before."""
        pairs = joined_rows(self.clicks, self.impressions)
        matched = {pair[:2] for pair in pairs}
        alone = [(*click, None) for click in self.clicks if click not in matched]
        assert of_ids(case, "inner", RANDOM) == pairs
        assert of_ids(case, "outer", RANDOM) == sorted(
            [*pairs, *alone], key=lambda row: (row[:2], row[2] or 0)
        )
        assert of_ids(case, "first_of_all", RANDOM) == sorted({(number,) for number, _ in self.clicks})
        counts = Counter((number, at // 300 * 300) for number, at in self.clicks)
        assert of_ids(case, "windows", RANDOM) == sorted((*key, count) for key, count in counts.items())
        assert of_ids(case, "sessions", RANDOM) == sessions_of(self.clicks, 180)


def of_ids(case: PipelineCase, table: str, ids: range) -> list[tuple[Any, ...]]:
    """The rows of a table with such ids."""
    columns = len(case.columns(table))
    rows = case.rows(table, order=", ".join(map(str, range(1, columns + 1))))
    return [row for row in rows if row[0] in ids]


@pytest.mark.timeout(240)
def test_unmatched_rows_come_once(pipeline):
    """A click whose impression never came is written once, when both streams' watermarks have passed it, and not before; and of
    random rows that come before it, late and doubled, over several batches every table has what a batch over them gives.
    """
    case = pipeline(BASE + WINDOWS)
    random_rows = RandomRows(case)
    land(case, "clicks", minutes((1, 602), (2, 603), (3, 607), (1, 602)))
    land(case, "impressions", minutes((1, 600), (2, 590), (3, 602)))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    random_rows.equal_the_batch(case)

    def rows(table: str) -> list[tuple[Any, ...]]:
        return of_ids(case, table, range(10))

    def update(*folders: tuple[str, list[Event]]) -> None:
        for folder, events in folders:
            land(case, folder, events)
        assert case.update(tables=TABLES).state == "COMPLETED"

    matched = [(n, 60 * c, 60 * i) for n, c, i in ((1, 602, 600), (1, 602, 600), (3, 607, 602))]
    assert rows("inner") == rows("outer") == matched
    assert rows("first_of_all") == [(1,), (2,), (3,)]
    update(("clicks", minutes((9, 660))))
    # The slower stream holds the watermark; the clicks alone have moved.
    assert rows("inner") == rows("outer") == matched
    update(("impressions", minutes((9, 660))))
    # A new update knows the watermark, not the clicks' part in it: the impressions alone can't move it either.
    assert rows("outer") == [*matched, (9, 39600, 39600)]
    update(("clicks", minutes((9, 661), (1, 655))), ("impressions", minutes((8, 662))))
    both = sorted([*matched, (9, 39600, 39600), (9, 39660, 39600)])
    assert rows("inner") == both
    outer = sorted([*both, (2, 36180, None)], key=lambda row: row[:2])
    assert rows("outer") == outer
    update()
    assert rows("outer") == outer
    assert rows("first_of_all") == [(1,), (2,), (3,), (9,)]
    # Ten minutes after it came an id is forgotten: the click of 10:55 is the first of its id again.
    assert rows("first_of_late") == [(1, 36120), (1, 39300), (2, 36180), (3, 36420), (9, 39600)]
