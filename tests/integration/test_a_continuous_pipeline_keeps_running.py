"""A continuous pipeline goes on through failures and a new definition, and its tables equal those of a batch.

That it is killed and loses nothing is what ``tests/fault_injection`` shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.continuous_driver import run_until, until
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.offsets import last_committed_batch
from headwater.delta_log.table_history import table_exists
from headwater_spark.commands import update
from headwater_spark.plans.session_settings import session_settings

SPEC = """
  pipelines.trigger.interval: 1 second
  pipelines.maxFlowRetryAttempts: 50
  spark.sql.pipelines.execution.watchdog.minRetryTime: 1s
  spark.sql.pipelines.execution.watchdog.maxRetryTime: 1s
"""
ONE_PARTITION = {"spark.sql.shuffle.partitions": "1"}
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
def case(pipeline: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipelineCase]:
    made = pipeline(SOURCE, spec=SPEC.removeprefix("\n"))
    for folder in ("rows", "sent", "seen"):
        (made.landing / folder).mkdir()
    # A new definition ends the application and begins another: this one is of the tests that follow, too.
    ended: list[None] = []
    monkeypatch.setattr(update, "end_session", lambda: ended.append(None))
    with session_settings(spark, ONE_PARTITION):
        yield made
    assert ended


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


def test_streams_run_side_by_side_through_failures_and_changes(
    case: PipelineCase, caplog: pytest.LogCaptureFixture
):
    """Six streams and a view. One stumbles, again and again, and the others go on until it recovers; the watermark of a join
    moves by what came in different batches; a definition that can't be read is said, and a new one is run by the same process; a
    stop ends it between two batches. Each batch has one record.
    """
    rows, stopper = Rows(case), case.landing.parent / "stopper"
    stopper.touch()
    rows.land(2)
    land_at(case, "sent", 1, "10:00")

    def beside() -> None:
        until(lambda: batches(case, "joined") > 0 and batches(case, "silver") > 0, "the others")
        # Beside the one that stumbles: more rows, more of the join, and a definition that can't be read.
        rows.land(1)
        land_at(case, "sent", 2, "12:00")
        case.write("transformations/broken.py", "def half(\n")
        before = batches(case, "joined")
        until(
            lambda: (
                "can't be run" in caplog.text
                and batches(case, "joined") > before
                and ("RESTARTING", 3) in statuses(case, "stumbling")
                and not rows.wrong()
            ),
            "the others beside the one that stumbles, its third attempt, and the trouble of the new definition",
        )
        (case.folder / "transformations" / "broken.py").unlink()
        stopper.unlink()
        land_at(case, "seen", 2, "12:00")
        until(
            lambda: (
                case.rows("joined") == [(1, False), (2, True)]
                and statuses(case, "stumbling")[-1] == ("RUNNING", None)
                and not rows.wrong()
            ),
            "the one that stumbled, and what has no partner in the join",
        )
        case.write(
            "transformations/another.py",
            "from pyspark.sql import functions as F; from headwater import pipelines as dp\n" + ANOTHER,
        )
        until(lambda: batches(case, "doubled") > 0, "the new definition")
        rows.land(2)
        until(lambda: not rows.wrong(), "all of it by the new definition")

    code, report = run_until(case, beside)
    assert (code, report["state"]) == (1, "CANCELED"), report
    assert {flow["state"] for flow in report["flows"]} == {"STOPPED"}
    assert not rows.wrong()
    seen = statuses(case, "stumbling")
    assert ("FAILED", 1) in seen
    assert seen.index(("FAILED", 1)) < seen.index(("RESTARTING", 2)) < seen.index(("FAILED", 2))
    states = [
        record["details"]["update_progress"]["state"]
        for record in case.events(event_type="update_progress")
        if record["details"]["update_progress"]["state"] in ("COMPLETED", "FAILED", "CANCELED")
    ]
    # The one whose definition was changed, and the stopped one.
    assert states == ["CANCELED", "CANCELED"]
    for flow in ("bronze", "silver", "latest", "stumbling", "joined", "doubled"):
        recorded = [r["origin"]["batch_id"] for r in case.events(flow=flow, level="METRICS")]
        last = last_committed_batch(case.checkpoint(flow).live_folder())
        assert recorded == list(range((last or 0) + 1)), flow
