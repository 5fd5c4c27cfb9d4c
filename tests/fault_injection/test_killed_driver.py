"""However often the driver is killed, and wherever, every table ends up as one query over all the data."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.fault_injection.crash_points import POINTS, STREAMS, any_time
from tests.fault_injection.driver import Driver
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.offsets import last_committed_batch
from headwater.testing.auto_cdc import expected_scd1, expected_scd2

SOURCE = """
@dp.table(comment="rows as they come")
@dp.expect("even", "id % 2 = 0")
@dp.expect_or_drop("positive", "points > 0")
def bronze():
    rows = spark.readStream.schema("id INT, team STRING, points INT")
    return rows.option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
def doubled():
    twice = F.explode(F.array(F.col("points"), F.col("points") * 2)).alias("points")
    return spark.readStream.option("maxFilesPerTrigger", 3).table("bronze").select("id", "team", twice)

@dp.table
def running():
    return dp.read_stream("bronze").groupBy("team").count()

@dp.table
@dp.expect_or_drop("small", "points < 9")
@dp.expect_or_quarantine("positive", "points > 0")
def checked():
    rows = spark.readStream.schema("id INT, team STRING, points INT")
    return rows.option("maxFilesPerTrigger", 1).json(LANDING)

@dp.materialized_view
def standings():
    return dp.read("doubled").groupBy("team").agg(F.count("*").alias("n"), F.sum("points").alias("points"))

@dp.temporary_view
def points_changes():
    return dp.read_stream("doubled").select(
        (F.col("id") % 17).alias("key"), "points", F.expr("id * 7919 % 1009 * 100 + points").alias("at"),
        F.when(F.col("points") % 5 == 0, "D").otherwise("U").alias("op"))

CHANGES = dict(source="points_changes", keys=["key"], sequence_by="at", apply_as_deletes="op = 'D'", except_column_list=["op", "at"])
dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", **CHANGES)
dp.create_streaming_table("history")
dp.create_auto_cdc_flow(target="history", stored_as_scd_type=2, **CHANGES)
dp.create_streaming_table("followed")
dp.create_auto_cdc_from_snapshot_flow(target="followed", source="standings", keys=["team"], stored_as_scd_type=2)
"""
SPEC = "spark: {spark.master: 'local[2]', spark.sql.shuffle.partitions: '2'}\n"
KILLS = int(os.environ.get("SOAK_RUNS", "4"))


class Feed:
    """Lands small files and remembers what was in them."""

    def __init__(self, case: PipelineCase, chance: random.Random) -> None:
        self._case, self._chance = case, chance
        self._next = 0.0
        self.rows: list[tuple[int, str, int]] = []

    def land(self, files: int) -> None:
        """Land some files now."""
        for _ in range(files):
            first = len(self.rows)
            self.rows += [
                (first + n, self._chance.choice("abc"), self._chance.randint(-2, 9))
                for n in range(self._chance.randint(1, 6))
            ]
            self._case.land(
                [{"id": i, "team": team, "points": points} for i, team, points in self.rows[first:]]
            )

    def now_and_then(self) -> None:
        """Land a file about every eight seconds."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 8
            self.land(1)

    @property
    def kept(self) -> list[tuple[int, str, int]]:
        """What the rules let through."""
        return [row for row in self.rows if row[2] > 0]


@pytest.mark.timeout(200 + 60 * KILLS)
def test_killed_again_and_again(tmp_path: Path):
    """Killed at seeded moments while files keep coming, then left alone: no row is missing or doubled, and the event
    log has one record of each batch.
    """
    seed = int(os.environ.get("HEADWATER_SEED", random.SystemRandom().randrange(10**6)))
    print(f"HEADWATER_SEED={seed}")
    chance = random.Random(seed)
    case = PipelineCase(tmp_path, SOURCE, spec=SPEC)
    feed = Feed(case, chance)
    drivers: list[Driver] = []
    try:
        killed = _kill_again_and_again(case, chance, feed, drivers)
        assert killed == KILLS
        _run_to_the_end(case, drivers)
        assert all(driver.all_ended(20) for driver in drivers), "a JVM outlived its driver"
    finally:
        for driver in drivers:
            driver.kill_group()
    _check_tables(case, feed)
    for flow in (*STREAMS, "latest", "history"):
        _check_records(case, flow)
    _check_endings(case)


def _kill_again_and_again(
    case: PipelineCase, chance: random.Random, feed: Feed, drivers: list[Driver]
) -> int:
    killed, missed = 0, 0
    points = chance.sample(POINTS, len(POINTS))
    while killed < KILLS and missed < 3 + KILLS // 4:
        point = points[killed] if killed < len(points) else chance.choice(POINTS)
        point = any_time if missed and not killed else point
        alone = chance.random() < 0.3
        feed.land(chance.randint(1, 3))
        started = time.monotonic()
        moment = point(case, chance)
        drivers.append(Driver.start(case))
        if drivers[-1].wait_for(moment, feed.now_and_then):
            drivers[-1].kill(alone=alone)
            killed += 1
        else:
            missed += 1
            code, answer = drivers[-1].answer()
            assert (code, answer["state"]) == (0, "COMPLETED"), drivers[-1].told()
        print(f"{point.__name__}, {alone=}, after {time.monotonic() - started:.1f} s, {killed=}, {missed=}")
        _check_nothing_doubled(case, feed)
    return killed


def _run_to_the_end(case: PipelineCase, drivers: list[Driver]) -> None:
    drivers.append(Driver.start(case))
    code, answer = drivers[-1].answer()
    assert (code, answer["state"]) == (0, "COMPLETED"), drivers[-1].told()


def _check_nothing_doubled(case: PipelineCase, feed: Feed) -> None:
    """At any moment the table holds a part of the rows, each as often as it came."""
    if (case.table("bronze") / "_delta_log").is_dir():
        assert not Counter(case.rows("bronze")) - Counter(feed.kept)


def _check_tables(case: PipelineCase, feed: Feed) -> None:
    doubled = [(i, team, points * k) for i, team, points in feed.kept for k in (1, 2)]
    assert Counter(case.rows("bronze")) == Counter(feed.kept)
    assert Counter(case.rows("doubled")) == Counter(doubled)
    assert dict(case.rows("running")) == Counter(team for _, team, _ in feed.kept)
    assert Counter(case.rows("checked")) == Counter(row for row in feed.kept if row[2] < 9)
    kept_out = Counter(row for row in feed.rows if row[2] <= 0)
    if kept_out:
        assert Counter(case.rows("checked_quarantine", "id, team, points")) == kept_out
    teams = sorted({team for _, team, _ in doubled})
    expected = [(team, *_totals(doubled, team)) for team in teams]
    assert case.rows("standings") == expected
    _check_changes(case, doubled)
    open_rows = [row for row in case.rows("followed") if row[-1] is None]
    assert [row[:3] for row in sorted(open_rows)] == expected


def _check_changes(case: PipelineCase, doubled: list[tuple[int, str, int]]) -> None:
    """What was merged from the changes is what the oracle makes of all of them."""
    events = [
        {
            "key": i % 17,
            "points": points,
            "at": i * 7919 % 1009 * 100 + points,
            "op": "U" if points % 5 else "D",
        }
        for i, _, points in doubled
    ]
    options: dict[str, Any] = {
        "keys": ["key"], "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D",
        "except_column_list": ("op", "at"),
    }  # fmt: skip
    latest = [tuple(row.values()) for row in expected_scd1(events, **options)]
    assert case.rows("latest", order="key") == latest
    history = [tuple(row.values()) for row in expected_scd2(events, **options)]
    assert case.rows("history", order='key, "__START_AT"') == history


def _totals(rows: list[tuple[int, str, int]], team: str) -> tuple[int, int]:
    points = [row[2] for row in rows if row[1] == team]
    return len(points), sum(points)


def _check_endings(case: PipelineCase) -> None:
    """Every update that got as far as to plan its flows has one end, and so has each of its flows."""
    endings: Counter[tuple[str, str | None]] = Counter()
    begun: set[tuple[str, str | None]] = set()
    for record in case.events(event_type=("flow_progress", "update_progress")):
        key = (record["origin"]["update_id"], record["origin"]["flow_name"])
        state = (
            record["details"].get("flow_progress", {}).get("status")
            or record["details"]["update_progress"]["state"]
        )
        begun.add(key)
        endings[key] += state in ("COMPLETED", "FAILED", "SKIPPED", "STOPPED", "CANCELED")
    assert begun
    assert {key: count for key, count in endings.items() if count != 1} == {}


def _check_records(case: PipelineCase, flow: str) -> None:
    """One record for each batch of the checkpoint, and together they tell of every row that was appended."""
    records = [r for r in case.events(flow=flow, level="METRICS") if r["origin"]["batch_id"] is not None]
    last = last_committed_batch(case.checkpoint(flow).epoch_folder(0))
    assert last is not None
    assert sorted(record["origin"]["batch_id"] for record in records) == list(range(last + 1))
    if flow in ("bronze", "doubled"):  # in the others a batch writes rows anew
        metrics: list[dict[str, Any]] = [r["details"]["flow_progress"]["metrics"] for r in records]
        assert sum(m["num_output_rows"] for m in metrics) == len(case.rows(flow))
    if flow == "checked":  # of a batch that a killed driver left, the table's commit has the counts
        quality = [r["details"]["flow_progress"]["data_quality"] for r in records]
        kept_out = case.rows("checked_quarantine", "id") if case.table("checked_quarantine").exists() else []
        assert sum(q["quarantined_records"] for q in quality) == len(kept_out)
