"""A backfill leaves the table as the batch result, beside the live stream, and never brings a row twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase

import run_backfill
from headwater.checkpoints.offsets import committed_offsets
from headwater_spark.backfills import backfill
from headwater_spark.execution.live_context import live_context

ORDERS = """
@dp.table
@dp.expect_or_drop("whole", "id IS NOT NULL")
def orders():
    lines = spark.readStream.schema("id INT, at TIMESTAMP, amount INT").json(LANDING)
    return lines.withColumn("tax", F.col("amount") * 2)

@dp.materialized_view
def by_day():
    days = dp.read("orders").groupBy(F.to_date("at").alias("day"))
    return days.agg(F.sum("tax").alias("tax"))
"""
MENDED = ORDERS.replace("* 2", "* 3")
BY_TIME = ("--column", "at", "--from", "2026-01-02", "--to", "2026-01-03")


def order(number: int | None, day: int, amount: int = 10) -> dict[str, Any]:
    return {"id": number, "at": f"2026-01-{day:02d}T12:00:00Z", "amount": amount}


def ran(case: Any, *arguments: str) -> tuple[int, dict[str, Any]]:
    """``headwater backfill`` in this process: the exit code, and the JSON of the last line."""
    code, answer = case.call(run_backfill.main, *arguments)
    return code, answer


def refused(case: Any, *arguments: str) -> str:
    """The condition that a backfill is refused with; nothing is written."""
    before = {path: path.stat().st_mtime_ns for path in case.warehouse.rglob("*.json")}
    code, answer = ran(case, *arguments)
    assert code in (2, 3), answer
    assert {path: path.stat().st_mtime_ns for path in case.warehouse.rglob("*.json")} == before
    return str(answer["error"]["condition"])


@contextmanager
def one_definition(case: PipelineCase) -> Iterator[None]:
    """Backfills that write nothing share one resolved pipeline: neither its sources nor its tables change meanwhile."""
    with live_context(case.project(), "tests") as context, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            backfill, "live_context", lambda _, run, __: nullcontext(replace(context, update_id=run))
        )
        yield


def taxes(case: Any) -> list[tuple[Any, ...]]:
    return case.rows("orders", "id, tax", "1")  # type: ignore[no-any-return]


def test_a_part_is_replaced_by_what_the_definition_gives_now(pipeline, spark):
    """A range of time, and then the rows of a condition: what the docstrings say."""
    case = pipeline(ORDERS)
    a_range_of_time_is_replaced(case, spark)
    rows_of_a_condition_are_replaced(case)


def a_range_of_time_is_replaced(case: PipelineCase, spark: SparkSession) -> None:
    """Rows of the range follow the mended code, the others stay; unread files are left to the stream; once is enough."""
    case.land([order(1, 1, 5), order(2, 2), order(None, 2)])
    case.land([order(3, 2, 50), order(4, 3), {"id": 6, "amount": None}])
    assert case.update().state == "COMPLETED"
    case.rewrite(MENDED)
    case.land([order(5, 2)])
    position = committed_offsets(case.checkpoint("orders").live_folder())

    code, planned = ran(case, "--tables", "orders", *BY_TIME, "--dry-run")
    (flow,) = planned["flows"]
    assert (code, planned["state"]) == (0, "PLANNED")
    assert (flow["input_rows"], flow["output_rows"], flow["dropped_rows"], flow["replaced_rows"]) == (
        3,
        2,
        1,
        2,
    )
    assert flow["source_bytes"] > 0 < flow["replaced_bytes"]
    assert taxes(case) == [(1, 10), (2, 20), (3, 100), (4, 20), (6, None)]

    code, done = ran(case, "--tables", "orders", *BY_TIME)
    assert (code, done["state"], done["flows"][0]["state"]) == (0, "COMPLETED", "COMPLETED")
    assert taxes(case) == [(1, 10), (2, 30), (3, 150), (4, 20), (6, None)]
    # The oracle: the same query as a batch over the files that the stream has read.
    files = [str(path) for path in sorted(case.landing.iterdir())[:2]]
    batch = spark.read.schema("id INT, at TIMESTAMP, amount INT").json(files).where("id IS NOT NULL")
    inside = batch.where("date(at) = '2026-01-02'").selectExpr("id", "amount * 3 AS tax").collect()
    assert sorted(map(tuple, inside)) == [row for row in taxes(case) if row[0] in (2, 3)]
    assert committed_offsets(case.checkpoint("orders").live_folder()) == position

    version = case.version("orders")
    assert ran(case, "--tables", "orders", *BY_TIME)[1]["flows"][0]["state"] == "DONE_BEFORE"
    assert case.version("orders") == version
    assert ran(case, "--tables", "orders", *BY_TIME, "--again")[1]["flows"][0]["state"] == "COMPLETED"
    assert case.update().state == "COMPLETED"
    assert taxes(case) == [(1, 10), (2, 30), (3, 150), (4, 20), (5, 30), (6, None)]
    records = [e["details"]["operation_progress"] for e in case.events(event_type="operation_progress")]
    assert [t["status"] for t in records if t["type"] == "BACKFILL"] == ["COMPLETED"] * 3
    assert ran(case, "--tables", "by_day", "--column", "day", *BY_TIME[2:])[1]["flows"][0]["output_rows"] == 1


def test_what_would_lose_or_double_rows_is_refused(pipeline):
    """Each refusal has its own condition, and nothing is written."""
    case = pipeline(ORDERS + STATEFUL)
    case.land([order(1, 1), order(2, 2)])
    assert refused(case, "--tables", "orders", *BY_TIME) == "RANGE_NOT_READ_YET"
    assert case.update().state == "COMPLETED"
    with one_definition(case):
        check_refusals(case)
    for file in case.landing.iterdir():
        file.unlink()
    assert refused(case, "--tables", "orders", *BY_TIME) == "FEWER_ROWS"
    assert ran(case, "--tables", "orders", *BY_TIME, "--allow-fewer-rows")[0] == 0
    assert taxes(case) == [(1, 20)]


def check_refusals(case: PipelineCase) -> None:
    """By name, range, mode and kind of table, after an update."""
    assert refused(case, "--tables", "order", *BY_TIME) == "UNKNOWN_DATASET"
    assert refused(case, "--tables", "orders", "--column", "id", *BY_TIME[2:]) == "INVALID_RANGE"
    assert refused(case, "--tables", "orders", "--column", "nope", *BY_TIME[2:]) == "INVALID_RANGE"
    assert (
        refused(case, "--tables", "orders", "--column", "at", "--from", "2026-01-03", "--to", "2026-01-02")
        == "INVALID_RANGE"
    )
    assert refused(case, "--tables", "orders", *BY_TIME, "--mode", "append") == "RANGE_ALREADY_WRITTEN"
    assert refused(case, "--tables", "orders", *BY_TIME, "--mode", "merge") == "USAGE"
    assert (
        refused(case, "--tables", "orders", "--range", "version", "--from", "0", "--to", "1")
        == "INVALID_RANGE"
    )
    assert (
        refused(case, "--tables", "by_day", "--column", "day", *BY_TIME[2:], "--mode", "append")
        == "BACKFILL_NOT_POSSIBLE"
    )
    assert refused(case, "--tables", "first_of_each", *BY_TIME) == "BACKFILL_NOT_POSSIBLE"
    assert refused(case, "--tables", "raw", *BY_TIME) == "READERS_WOULD_BREAK"


def rows_of_a_condition_are_replaced(case: PipelineCase) -> None:
    """Those that it names follow the mended code, others and NULLs stay; a view's part is recomputed; what can't mean the same twice is refused."""
    case.rewrite(ORDERS.replace("* 2", "* 4"))
    mine = ("--tables", "orders", "--where", "amount >= 10 and exists(array(id), one -> one <> 3)")
    (planned,) = ran(case, *mine, "--dry-run")[1]["flows"]
    assert (planned["output_rows"], planned["replaced_rows"]) == (3, 3)
    assert ran(case, *mine)[1]["flows"][0]["state"] == "COMPLETED"
    assert taxes(case) == [(1, 10), (2, 40), (3, 150), (4, 40), (5, 40), (6, None)]
    assert ran(case, *mine)[1]["flows"][0]["state"] == "DONE_BEFORE"
    record = case.events(event_type="operation_progress", containing="BACKFILL")[-1]
    assert record["details"]["operation_progress"]["range"] == {"kind": "where", "where": mine[-1]}
    older = ran(case, "--tables", "by_day", "--where", "day < '2026-01-02' or false -- older")
    assert older[1]["flows"][0]["output_rows"] == 1
    conditions = (
        "nope = 1",
        "amount",
        "at < current_date()",
        "id IN (SELECT 1)",
        "rand() < 0.5",
        "amount >",
    )
    with one_definition(case):
        answers = {text: refused(case, "--tables", "orders", "--where", text) for text in conditions}
    assert answers == dict.fromkeys(conditions, "INVALID_RANGE")


STATEFUL = """
@dp.table
def raw():
    return spark.readStream.schema("id INT, at TIMESTAMP").json(LANDING)

@dp.table
def first_of_each():
    return dp.read_stream("raw").withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["id"])
"""
