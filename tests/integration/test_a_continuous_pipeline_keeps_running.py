"""A continuous pipeline goes on through failures, a new definition and a kill, and its tables equal those of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.continuous_driver import ContinuousDriver, run_until, until
from tests.pipeline_case import SMALL_QUERIES, SPARK, PipelineCase, spec_of

from headwater.checkpoints.offsets import last_committed_batch
from headwater.delta_log.table_history import table_exists
from headwater_spark.plans.session_settings import session_settings
from headwater_spark.testing.local_session import forget_tables

SPEC = """
  pipelines.trigger.interval: 1 second
  pipelines.maxFlowRetryAttempts: 50
  spark.sql.pipelines.execution.watchdog.minRetryTime: 1s
  spark.sql.pipelines.execution.watchdog.maxRetryTime: 1s
"""
ONE_PARTITION = {"spark.sql.shuffle.partitions": "1"}
QUICK = spec_of({**SPARK, **SMALL_QUERIES, **ONE_PARTITION})
SOURCE = """
import os

STOPPER = LANDING + "/../stopper"
SHAPE = "id INT, team STRING, points INT"

@dp.table
@dp.expect_or_quarantine("not_x", "team <> 'x'")
def bronze():
    return spark.readStream.schema(SHAPE).json(LANDING + "/rows")

@dp.table
@dp.expect_or_drop("positive", "points > 0")
def silver():
    return dp.read_stream("bronze")

@F.udf("int")
def stumbles(value):
    if os.path.exists(STOPPER):
        raise ValueError("stumbled")
    return value

@dp.table
def stumbling():
    return dp.read_stream("bronze").select(stumbles("id").alias("id"), "team")

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="silver", keys=["team"], sequence_by="id", stored_as_scd_type=1)

def timed(folder):
    return spark.readStream.schema("id INT, at TIMESTAMP").json(LANDING + "/" + folder).withWatermark("at", "1 minute")

@dp.table
def joined():
    sent, seen = timed("sent").alias("a"), timed("seen").alias("b")
    near = F.expr("a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE")
    return sent.join(seen, near, "left_outer").select(F.col("a.id").alias("id"), F.col("b.id").isNotNull().alias("seen"))

@dp.materialized_view
def totals():
    return dp.read("silver").groupBy("team").agg(F.count("*").alias("n"), F.sum("points").alias("points"))
"""
ANOTHER = """
@dp.table
def doubled():
    return dp.read_stream("silver").select("id", (F.col("points") * 2).alias("points"))
"""


class Rows:
    """What has landed, and what the tables have to be."""

    def __init__(self, case: PipelineCase) -> None:
        self.case = case
        self.rows: list[tuple[int, str, int]] = []

    def land(self, files: int) -> None:
        """Some files, each with rows of every kind."""
        for _ in range(files):
            first = len(self.rows)
            new = [
                (first + n, team, points)
                for n, (team, points) in enumerate([("a", 3), ("x", 2), ("b", -1), ("b", 5)])
            ]
            self.rows += new
            self.case.land([{"id": i, "team": t, "points": p} for i, t, p in new], "rows")

    def wrong(self) -> str:
        """The first table that is not what it has to be (yet); empty where all are."""
        bronze = [row for row in self.rows if row[1] != "x"]
        silver = [row for row in bronze if row[2] > 0]
        teams = sorted({row[1] for row in silver})
        of_team = {team: [row for row in silver if row[1] == team] for team in teams}
        expected: dict[str, Any] = {
            "bronze": Counter(bronze),
            "silver": Counter(silver),
            "latest": Counter(max(rows) for rows in of_team.values()),
            "stumbling": Counter((row[0], row[1]) for row in bronze),
            "totals": Counter((t, len(rows), sum(row[2] for row in rows)) for t, rows in of_team.items()),
        }
        if (self.case.folder / "transformations" / "another.py").exists():
            expected["doubled"] = Counter((row[0], row[2] * 2) for row in silver)
        if (self.case.landing / ".." / "stopper").exists():
            del expected["stumbling"]
        tables = ((name, rows) for name, rows in expected.items())
        return next((name for name, rows in tables if not self._is(name, rows)), "")

    def _is(self, name: str, expected: Counter[Any]) -> bool:
        return table_exists(self.case.table(name)) and Counter(self.case.rows(name)) == expected


@pytest.fixture
def case(tmp_path: Path) -> Iterator[PipelineCase]:
    made = PipelineCase(tmp_path, SOURCE, spec=SPEC.removeprefix("\n") + QUICK)
    for folder in ("rows", "sent", "seen"):
        (made.landing / folder).mkdir()
    return made


@pytest.fixture
def drivers() -> Iterator[list[ContinuousDriver]]:
    started: list[ContinuousDriver] = []
    yield started
    for driver in started:
        driver.end()


def statuses(case: PipelineCase, flow: str) -> list[tuple[str, int | None]]:
    records = (r["details"]["flow_progress"] for r in case.events(flow=flow, event_type="flow_progress"))
    return [(body["status"], body.get("attempt")) for body in records]


def batches(case: PipelineCase, flow: str) -> int:
    """How many batches a flow has committed."""
    last = last_committed_batch(case.checkpoint(flow).live_folder())
    return 0 if last is None else last + 1


def land_at(case: PipelineCase, place: str, number: int, at: str) -> None:
    """A row for the join."""
    case.land([{"id": number, "at": f"2026-01-01T{at}:00Z"}], place)


def test_streams_run_side_by_side_through_failures_changes_and_kills(
    case: PipelineCase, drivers: list[ContinuousDriver], spark: SparkSession
):
    """Six streams and a view. One stumbles, again and again, and the others go on until it recovers; the watermark of a join
    moves by what came in different batches; a new definition is run by the same process; a kill loses and doubles nothing; a
    stop ends it between two batches. Each batch has one record, and the log few commits.
    """
    rows, stopper = Rows(case), case.landing.parent / "stopper"
    stopper.touch()
    rows.land(2)
    land_at(case, "sent", 1, "10:00")
    driver = ContinuousDriver.start(case, "first")
    drivers.append(driver)
    driver.wait_for(lambda: batches(case, "joined") > 0 and batches(case, "silver") > 0, "the others")
    # Beside the one that stumbles: more rows, more of the join, and a definition that can't be read.
    rows.land(1)
    land_at(case, "sent", 2, "12:00")
    case.write("transformations/broken.py", "def half(\n")
    before = batches(case, "joined")
    driver.wait_for(
        lambda: (
            "can't be run" in driver.log.read_text()
            and batches(case, "joined") > before
            and ("RESTARTING", 3) in statuses(case, "stumbling")
            and not rows.wrong()
        ),
        "the others beside the one that stumbles, its third attempt, and the trouble of the new definition",
    )
    (case.folder / "transformations" / "broken.py").unlink()
    stopper.unlink()
    land_at(case, "seen", 2, "12:00")
    driver.wait_for(
        lambda: (
            case.rows("joined") == [(1, False), (2, True)]
            and statuses(case, "stumbling")[-1] == ("RUNNING", None)
            and not rows.wrong()
        ),
        "the one that stumbled, and what has no partner in the join",
    )
    seen = statuses(case, "stumbling")
    assert ("FAILED", 1) in seen
    assert seen.index(("FAILED", 1)) < seen.index(("RESTARTING", 2)) < seen.index(("FAILED", 2))

    process, first = driver.process.pid, batches(case, "bronze")
    case.write(
        "transformations/another.py",
        "from pyspark.sql import functions as F; from headwater import pipelines as dp\n" + ANOTHER,
    )
    driver.wait_for(lambda: batches(case, "doubled") > 0, "the new definition")
    assert driver.process.pid == process
    rows.land(3)
    driver.wait_for(lambda: batches(case, "bronze") > first, "a batch")
    driver.kill()
    rows.land(2)
    # What comes next needs no process of its own: nobody kills it.
    with session_settings(spark, ONE_PARTITION):
        code, report = run_until(case, lambda: until(lambda: not rows.wrong(), "all of it after a kill"))
    forget_tables(spark)
    assert (code, report["state"]) == (1, "CANCELED"), report
    assert {flow["state"] for flow in report["flows"]} == {"STOPPED"}
    assert not rows.wrong()

    states = [
        record["details"]["update_progress"]["state"]
        for record in case.events(event_type="update_progress")
        if record["details"]["update_progress"]["state"] in ("COMPLETED", "FAILED", "CANCELED")
    ]
    # The changed one, the killed one (closed by the next, decision 0188), the stopped one.
    assert states == ["CANCELED", "FAILED", "CANCELED"]
    for flow in ("bronze", "silver", "latest", "stumbling", "joined", "doubled"):
        recorded = [r["origin"]["batch_id"] for r in case.events(flow=flow, level="METRICS")]
        last = last_committed_batch(case.checkpoint(flow).live_folder())
        assert recorded == list(range((last or 0) + 1)), flow
