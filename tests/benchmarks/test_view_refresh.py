"""What a refresh by what changed takes, against the same view recomputed: correctness is checked before time is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase

from headwater_spark.session import start_session

ROWS = int(os.environ.get("BENCH_ROWS", "4000000"))
CHANGED = ROWS // 1000
DAYS = 400
VIEWS = {
    "appended": "select id, day, cust, upper(status) st, amount * qty v from sales where qty > 1",
    "summed": "select day, store, count(*) n, sum(amount) m from sales group by day, store",
    "joined_distinct": "select s.day, st.region, count(distinct s.cust) u, sum(s.amount) m from sales s join store st on s.store = st.store group by s.day, st.region",
    "windowed": "select store, day, id, sum(amount) over (partition by store, day order by id) run from sales",
}
SOURCE = """
VIEWS = {views!r}

def declare(name, text, policy):
    @dp.materialized_view(name=name, refresh_policy=policy)
    def view():
        return spark.sql(text)

for name, text in VIEWS.items():
    declare(name, text, "incremental")
    declare(name + "_full", text, "full")
"""


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """All cores of the machine."""
    return start_session("tests", {"spark.master": "local[*]", "spark.sql.shuffle.partitions": "4"})


def _sales(spark: SparkSession, first: int, rows: int, days: str) -> Any:
    return spark.range(first, first + rows).selectExpr(
        "id", f"date_add(date'2025-01-01', cast({days} as int)) day", "cast(id * 7919 % 100000 as bigint) cust",
        "cast(id % 50 as int) store", "cast(id % 5 as int) qty", "cast(id % 1000 as decimal(12,2)) amount", "concat('s', id % 4) status",
    )  # fmt: skip


def test_appends_and_updates(spark: SparkSession, tmp_path: Path) -> None:
    """A thousandth of the rows comes, then a thousandth changes, on the last day: both ways give the same rows."""
    case = PipelineCase(tmp_path, SOURCE.format(views=VIEWS))
    sales = case.table("sales")
    days = f"id div {max(1, ROWS // DAYS)}"
    _sales(spark, 0, ROWS, days).write.format("delta").save(str(sales))
    spark.range(50).selectExpr("cast(id as int) store", "concat('r', id % 5) region").write.format(
        "delta"
    ).save(str(case.table("store")))
    assert case.update().state == "COMPLETED"
    _sales(spark, ROWS, CHANGED, str(DAYS)).coalesce(1).write.format("delta").mode("append").save(str(sales))
    told = [_measured(case, spark, "appended")]
    spark.sql(
        f"update delta.`{sales}` set amount = amount + 1 where day = date_add(date'2025-01-01', {DAYS})"
    )
    told.append(_measured(case, spark, "updated"))
    print("\n".join(told))


def _measured(case: PipelineCase, spark: SparkSession, what: str) -> str:
    report = case.update()
    assert report.state == "COMPLETED", report.error
    lines = []
    for name in VIEWS:
        one, other = (spark.read.format("delta").load(str(case.table(n))) for n in (name, f"{name}_full"))
        assert one.exceptAll(other).isEmpty(), name
        assert other.exceptAll(one).isEmpty(), name
        by_change, whole = report[name].seconds, report[f"{name}_full"].seconds
        lines.append(
            f"{what:9} {name:16} {by_change:6.1f} s, recomputed {whole:6.1f} s: {whole / by_change:4.1f} times as fast"
        )
    return "\n".join(lines)
