"""How many Spark jobs a refresh by what changed takes: each has its price, and none may come back unnoticed."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase
from tests.spark_jobs import jobs_since, last_job

pytestmark = pytest.mark.usefixtures("adaptive")

VIEWS = {
    "chosen": "select id, day, upper(name) n from events where qty > 1",
    "grouped": "select day, count(*) n, sum(qty) q, max(id) m from events group by day",
    "ranked": "select * from (select id, day, qty, row_number() over (partition by day order by qty, id) rn from events) where rn < 4",
    "counted": "select day, kind, count(distinct name) n from events join kinds using (kind) group by day, kind",
    "by_part": "select day, kind, avg(qty) a from events group by day, kind",
    "named": "select id, day, name from events",
    "total": "select count(*) n from events join kinds using (kind)",
}
SOURCE = """
VIEWS = {views!r}

def declare(name, text):
    parts = ["day"] if name == "by_part" else []
    @dp.materialized_view(name=name, refresh_policy="incremental", partition_cols=parts, table_properties={{"delta.enableChangeDataFeed": "true"}})
    def view():
        return spark.sql(text)

for name, text in VIEWS.items():
    declare(name, text)
"""
# With the jobs that the query itself takes: one that sends the few kinds to all workers.
APPENDED = {"chosen": ("APPEND_ONLY", 1), "grouped": ("GROUP_AGGREGATE", 3)}
CHANGED = {
    "chosen": ("ROW_BASED", 2),
    "grouped": ("GENERIC_AGGREGATE", 2),
    "ranked": ("WINDOW_FUNCTION", 2),
    "counted": ("GENERIC_AGGREGATE", 3),
    "by_part": ("PARTITION_OVERWRITE", 4),
}


def rows_of(case: PipelineCase, spark: SparkSession, first: int, day: str) -> None:
    """Twenty rows of some days."""
    made = spark.range(first, first + 20, 1, 1).selectExpr(
        "id", f"{day} day", "cast(id % 5 as int) qty", "concat('n', id % 3) name", "id % 4 kind"
    )
    made.write.format("delta").mode("append").save(str(case.table("events")))


def taken(case: PipelineCase, spark: SparkSession, *names: str) -> tuple[dict[str, str], list[str]]:
    """The technique of each refresh of an update, and the jobs that all of them took."""
    before = last_job(spark)
    report = case.update(tables=names)
    assert report.state == "COMPLETED", report.error
    techniques = {}
    for event in case.events(update_id=report.result.update_id, event_type="planning_information"):
        told = event["details"]["planning_information"]["technique_information"]
        chosen = next(one["maintenance_type"] for one in told if one.get("is_chosen"))
        techniques[event["origin"]["dataset_name"]] = chosen.removeprefix("MAINTENANCE_TYPE_")
    return techniques, jobs_since(spark, before)


def counted(case: PipelineCase, spark: SparkSession, name: str) -> tuple[str, int]:
    """The technique of a view's refresh, and how many jobs it took."""
    techniques, jobs = taken(case, spark, name)
    print(name, techniques[name], *jobs, sep="\n  ")
    return techniques[name], len(jobs)


def test_jobs_of_each_technique(pipeline: Any, spark: SparkSession) -> None:
    """Changes are looked for by one job, for all views of an update, and written by one each; an append takes one. Rows are right."""
    case: PipelineCase = pipeline(SOURCE.format(views=VIEWS))
    spark.range(4).selectExpr("id kind", "concat('k', id) label").write.format("delta").save(
        str(case.table("kinds"))
    )
    for first in (0, 20, 40):
        rows_of(case, spark, first, f"date_add(date'2026-01-01', cast(id % 4 as int) + {first})")
    assert case.update().state == "COMPLETED"
    # A dimension that changed in a column that they don't use keeps no view from taking new rows in.
    spark.sql(f"update delta.`{case.table('kinds')}` set label = upper(label)")
    rows_of(case, spark, 80, "date'2026-03-01'")
    techniques, _ = taken(case, spark, "counted", "total")
    assert techniques == {"counted": "GENERIC_AGGREGATE", "total": "GROUP_AGGREGATE"}
    rows_of(case, spark, 60, "date_add(date'2026-02-10', cast(id % 2 as int) * 9)")
    assert {name: counted(case, spark, name) for name in APPENDED} == APPENDED
    spark.sql(f"update delta.`{case.table('events')}` set qty = qty + 2 where id % 20 = 3")
    assert {name: counted(case, spark, name) for name in CHANGED} == CHANGED

    # Together: one look is for all, and views that use nothing of what changed need no more than that.
    assert taken(case, spark)[0]["named"] == "ROW_BASED"
    spark.sql(f"update delta.`{case.table('events')}` set qty = qty + 3 where id % 20 = 7")
    techniques, jobs = taken(case, spark)
    print("together", *jobs, sep="\n  ")
    follow = {name: how for name, how in CHANGED.items() if name != "counted"}
    same = dict.fromkeys(("counted", "named", "total"), "NO_OP")
    assert techniques == {**{name: technique for name, (technique, _) in follow.items()}, **same}
    assert len(jobs) == sum(number - 1 for _, number in follow.values()) + 1
    spark.sql(f"update delta.`{case.table('kinds')}` set label = lower(label)")
    assert taken(case, spark, "counted", "total")[0] == {"counted": "NO_OP", "total": "NO_OP"}

    # What came to nothing is behind a view: it needs no file of that any more, and takes new rows in as if nothing had been.
    for name in ("events", "kinds"):
        DeltaTable(str(case.table(name))).vacuum(0, dry_run=False, enforce_retention_duration=False)
    rows_of(case, spark, 100, "date'2026-03-02'")
    techniques, _ = taken(case, spark, "counted", "total", "named")
    assert techniques == {"counted": "GENERIC_AGGREGATE", "total": "GROUP_AGGREGATE", "named": "APPEND_ONLY"}
    assert case.update().state == "COMPLETED"
    for name in ("events", "kinds"):
        spark.read.format("delta").load(str(case.table(name))).createOrReplaceTempView(name)
    for name, text in VIEWS.items():
        there, wanted = spark.read.format("delta").load(str(case.table(name))), spark.sql(text)
        assert there.exceptAll(wanted).isEmpty(), name
        assert wanted.exceptAll(there).isEmpty(), name
