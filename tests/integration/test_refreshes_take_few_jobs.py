"""How many Spark jobs a refresh by what changed takes: each has its price, and none may come back unnoticed."""

from __future__ import annotations

from collections import Counter
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
# The technique of each refresh, and its jobs with those that the query itself takes: one that sends the few kinds to all workers.
APPENDED = {
    "chosen": ("APPEND_ONLY", 1), "grouped": ("GROUP_AGGREGATE", 3), "counted": ("GENERIC_AGGREGATE", 5), "total": ("GROUP_AGGREGATE", 4),
}  # fmt: skip
# The first look for changes is for all of them, and not counted here.
CHANGED = {
    "chosen": ("ROW_BASED", 1),
    "grouped": ("GENERIC_AGGREGATE", 1),
    "ranked": ("WINDOW_FUNCTION", 1),
    "by_part": ("PARTITION_OVERWRITE", 3),
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


def refreshed(
    case: PipelineCase, spark: SparkSession, wanted: dict[str, tuple[str, int]], looks: int, *names: str
) -> None:
    """Run an update: its techniques and the number of its jobs, with such looks for changes, are these."""
    techniques, jobs = taken(case, spark, *names)
    print(techniques, *jobs, sep="\n  ")
    assert {name: techniques[name] for name in wanted} == {name: how for name, (how, _) in wanted.items()}
    assert {techniques[name] for name in techniques.keys() - wanted.keys()} <= {"NO_OP"}
    assert len(jobs) == sum(number for _, number in wanted.values()) + looks


def test_jobs_of_each_technique(pipeline: Any, spark: SparkSession) -> None:
    """Changes are looked for by one job, for all views of an update, and written by one each; an append takes one. Rows are right."""
    case: PipelineCase = pipeline(SOURCE.format(views=VIEWS))
    events, kinds = (f"delta.`{case.table(name)}`" for name in ("events", "kinds"))
    spark.range(4).selectExpr("id kind", "concat('k', id) label").write.format("delta").save(
        str(case.table("kinds"))
    )
    for first in (0, 20, 40):
        rows_of(case, spark, first, f"date_add(date'2026-01-01', cast(id % 4 as int) + {first})")
    assert case.update().state == "COMPLETED"
    # A dimension that changed in a column that they don't use keeps no view from taking new rows in.
    spark.sql(f"update {kinds} set label = upper(label)")
    rows_of(case, spark, 60, "date_add(date'2026-02-10', cast(id % 2 as int) * 9)")
    refreshed(case, spark, APPENDED, 0, *APPENDED)
    # One look is for all that stand at one version, here at two; views that use nothing of what changed need no more than that.
    spark.sql(f"update {events} set qty = qty + 2 where id % 20 = 3")
    refreshed(case, spark, {**CHANGED, "named": ("ROW_BASED", 1)}, 2)
    spark.sql(f"update {events} set qty = qty + 3 where id % 20 = 7")
    spark.sql(f"update {kinds} set label = lower(label)")
    refreshed(case, spark, CHANGED, 2)

    # What came to nothing is behind a view: it needs no file of that any more, and takes new rows in as if nothing had been.
    for name in ("events", "kinds"):
        DeltaTable(str(case.table(name))).vacuum(0, dry_run=False, enforce_retention_duration=False)
    rows_of(case, spark, 100, "date'2026-03-02'")
    techniques, _ = taken(case, spark)
    wanted = {**{name: how for name, (how, _) in APPENDED.items()}, "named": "APPEND_ONLY"}
    assert {name: techniques[name] for name in wanted} == wanted
    for name in ("events", "kinds"):
        spark.read.format("delta").load(str(case.table(name))).createOrReplaceTempView(name)
    for name, text in VIEWS.items():
        assert Counter(case.rows(name)) == Counter(map(tuple, spark.sql(text).collect())), name
