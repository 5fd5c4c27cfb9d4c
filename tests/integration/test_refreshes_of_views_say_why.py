"""Why a view is recomputed, or left alone: after an edit, a foreign commit, under each policy; and what explain says of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline_case import PipelineCase

from headwater.incremental.conditions import NeverIncrementalizable
from headwater_spark.commands.explain import explain
from headwater_spark.resolution.incremental_views import incremental_entry, with_incremental_views

HELPER = "def twice(x):\n    return None if x is None else 2 * x\n"
SOURCE = (
    HELPER
    + """
doubled = F.udf(twice, "bigint")

@dp.materialized_view(refresh_policy="incremental")
def by_key():
    return spark.read.table("events").groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("v"))

@dp.materialized_view(refresh_policy="incremental_strict")
def rows_of():
    return spark.sql("select k, v from events where v > 0")

@dp.materialized_view(refresh_policy="incremental")
def in_python():
    return spark.read.table("events").select("k", doubled("v").alias("d"))

@dp.materialized_view
def small():
    return spark.read.table("events").select("k")

@dp.materialized_view(refresh_policy="incremental")
def with_a_feed():
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", "0").table("prices")
    return spark.read.table("events").join(feed, "k").select("k", "v", "price")
"""
)


def planned(case: PipelineCase, report: Any) -> dict[str, str]:
    """How each view was refreshed: the technique, and the names of the reasons."""
    shown = {}
    for event in case.events(update_id=report.result.update_id, event_type="planning_information"):
        told = event["details"]["planning_information"]["technique_information"]
        chosen = next(one["maintenance_type"] for one in told if one.get("is_chosen"))
        reasons = [issue["issue_type"] for one in told for issue in one.get("incrementalization_issues", ())]
        shown[event["origin"]["dataset_name"]] = " ".join(
            [chosen.removeprefix("MAINTENANCE_TYPE_"), *reasons]
        )
    return shown


def test_reasons(pipeline: Any, spark: Any) -> None:
    """An edit recomputes what it changed only; foreign rows, a log that was cut and a small view are told by their names."""
    case: PipelineCase = pipeline(SOURCE)
    table = str(case.table("events"))
    spark.sql("select id % 3 k, id v from range(10)").write.format("delta").save(table)
    prices = str(case.table("prices"))
    feed = spark.sql("select 1L k, 5 price").write.option("delta.enableChangeDataFeed", "true")
    feed.format("delta").save(prices)
    first = case.update()
    assert first.state == "COMPLETED", first.error
    assert planned(case, first) == dict.fromkeys(
        ("by_key", "rows_of", "in_python", "small", "with_a_feed"), "COMPLETE_RECOMPUTE CHANGE_SET_MISSING"
    )

    # Lines move, one function does something else, one query has another condition.
    edited = SOURCE.replace("2 * x", "3 * x")
    case.rewrite("# a comment\n\n" + edited.replace("v > 0", "v > 1"))
    second = case.update()
    assert planned(case, second) == {
        "by_key": "NO_OP", "small": "NO_OP", "with_a_feed": "COMPLETE_RECOMPUTE QUERY_FINGERPRINT_CHANGED",
        "rows_of": "COMPLETE_RECOMPUTE QUERY_FINGERPRINT_CHANGED", "in_python": "COMPLETE_RECOMPUTE QUERY_FINGERPRINT_CHANGED",
    }  # fmt: skip
    assert case.rows("in_python", "sum(d)") == [(135,)]

    spark.sql(f"insert into delta.`{table}` values (1, 100), (7, null)")
    spark.sql(f"insert into delta.`{prices}` values (2, 9)")
    spark.sql(f"delete from delta.`{case.table('by_key')}` where k = 0")
    third = case.update()
    assert planned(case, third) == {
        "by_key": "COMPLETE_RECOMPUTE DATA_HAS_CHANGED", "rows_of": "APPEND_ONLY", "in_python": "APPEND_ONLY",
        "small": "COMPLETE_RECOMPUTE INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL", "with_a_feed": "COMPLETE_RECOMPUTE INPUT_NOT_IN_DELTA",
    }  # fmt: skip
    # Rows that were there before have a partner now.
    assert case.rows("with_a_feed", "k, price") == [*[(1, 5)] * 4, *[(2, 9)] * 3]
    assert case.rows("by_key") == [(0, 4, 18), (1, 4, 112), (2, 3, 15), (7, 1, None)]
    assert third["rows_of"].output_rows == 1

    with case.resolved() as resolved:
        told = explain(resolved, "by_key")
        allowed = {entry.name: entry.incremental for entry in with_incremental_views(resolved).datasets}
    # What `validate` writes into the manifest.
    assert {name: one is not None and one.eligible for name, one in allowed.items()} == {
        "by_key": True, "rows_of": True, "in_python": True, "small": True, "with_a_feed": True,
    }  # fmt: skip
    assert allowed["rows_of"] is not None
    assert allowed["rows_of"].policy == "incremental_strict"
    assert [(one.source, one.rows_added, one.rows_changed) for one in allowed["rows_of"].sources] == [
        ("shop/events", "APPEND_ONLY", "ROW_BASED")
    ]
    assert told["eligible"]
    assert told["sources"][0]["rows_added"] == "GROUP_AGGREGATE"
    assert told["sources"][0]["rows_changed"] == "GENERIC_AGGREGATE"
    assert told["sources"][0]["found_by"] == ["k"]
    assert told["last_refresh"]["technique"] == "COMPLETE_RECOMPUTE"
    ((source, since),) = told["next_refresh"]["sources"].items()
    assert source == told["sources"][0]["source"]
    assert since["since_last_refresh"] == "UNCHANGED"
    assert since["bytes"] > 0
    assert since["needs"].startswith("nothing; with delta.enableChangeDataFeed=true")
    assert [one["technique"] for one in told["next_refresh"]["candidates"]] == ["COMPLETE_RECOMPUTE"]
    assert told["next_refresh"]["expected"] == "NO_OP: no source has changed since the last refresh."

    # No source moves, and others change rows of a view: they are put right, and nothing else is done.
    spark.sql(f"update delta.`{case.table('small')}` set k = 99 where k = 7")
    mended = case.update(tables=("small", "by_key"))
    assert planned(case, mended) == {"small": "COMPLETE_RECOMPUTE DATA_HAS_CHANGED", "by_key": "NO_OP"}
    assert [row for row in case.rows("small", "k") if row[0] > 2] == [(7,)]

    # A view, and then a source, is brought back from a copy; each has the id of the table that was there. One view shows it.
    copies = {name: case.root / f"{name}.copy" for name in ("by_key", "events")}
    for name, copy in copies.items():
        shutil.copytree(case.table(name), copy)
    spark.sql(f"insert into delta.`{table}` values (1, 50)")
    assert case.update(tables=("by_key",)).state == "COMPLETED"
    _bring_back(case, spark, "by_key", copies)
    assert planned(case, case.update(tables=("by_key",))) == {"by_key": "GROUP_AGGREGATE"}
    assert case.rows("by_key") == [(0, 4, 18), (1, 5, 162), (2, 3, 15), (7, 1, None)]
    _bring_back(case, spark, "events", copies)
    spark.sql(f"insert into delta.`{table}` values (2, 60)")
    with case.resolved() as resolved:
        told = explain(resolved, "by_key")
    assert told["next_refresh"]["expected"].startswith("COMPLETE_RECOMPUTE: version ")
    anew = case.update(tables=("by_key",))
    assert planned(case, anew) == {"by_key": "COMPLETE_RECOMPUTE CHANGE_SET_MISSING"}
    assert case.rows("by_key") == [(0, 4, 18), (1, 4, 112), (2, 4, 75), (7, 1, None)]

    # The log no longer says what came in between.
    spark.sql(f"insert into delta.`{table}` values (1, 1)")
    spark.sql(f"insert into delta.`{table}` values (2, 2)")
    log = case.table("events") / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json") if file.stem.isdigit())
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table).checkpoint()
    (log / f"{newest - 1:020d}.json").unlink()
    fourth = case.update(tables=("by_key", "rows_of"))
    assert fourth.statuses == {"by_key": "COMPLETED", "rows_of": "FAILED"}
    assert "VIEW_NOT_REFRESHED_INCREMENTALLY" in str(fourth["rows_of"].error)
    assert planned(case, fourth)["by_key"] == "COMPLETE_RECOMPUTE CDF_UNAVAILABLE"
    assert case.update(full_refresh=("rows_of",)).state == "COMPLETED"

    _explained_with_other_columns(case, edited)


def _explained_with_other_columns(case: PipelineCase, edited: str) -> None:
    case.rewrite(edited.replace('.select("k")', '.select("v")'))
    with case.resolved() as resolved:
        explained = explain(resolved, "small")
    other = (
        "COMPLETE_RECOMPUTE: the view's query has other columns than at the last refresh: without k, with v"
    )
    assert explained["next_refresh"]["expected"].startswith(other)


def _bring_back(case: PipelineCase, spark: Any, name: str, copies: dict[str, Path]) -> None:
    """Put a copy in the place of a table; a driver of its own would know nothing of what was there."""
    shutil.rmtree(case.table(name))
    shutil.move(copies[name], case.table(name))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("spark.read.table('events').orderBy('v').limit(3)", "OPERATOR_NOT_SUPPORTED"),
        ("spark.read.table('events').select(F.rand().alias('r'))", "NON_DETERMINISTIC_EXPRESSION"),
        ("spark.read.table('events').agg(F.avg('v').alias('n'))", "AGGREGATE_NOT_TOP_NODE"),
        ("spark.range(3)", "INPUT_NOT_IN_DELTA"),
        ("spark.read.schema('k INT').json(LANDING)", "INPUT_NOT_IN_DELTA"),
        (
            "spark.sql('select a.v, b.v w from events a join events b on a.v > b.v')",
            "each table is read several times",
        ),
        ("spark.read.table('events').where(\"date'2026-01-01' < 'today'\")", "TIME_FUNCTION"),
    ],
)
def test_policies_that_can_not_be_kept(pipeline: Any, spark: Any, query: str, reason: str) -> None:
    """A view that can never be refreshed incrementally is refused where its policy promises that, before anything is written."""
    case: PipelineCase = pipeline(
        f"@dp.materialized_view(refresh_policy='incremental')\ndef t():\n    return {query}\n"
    )
    spark.sql("select 1 k, 2 v").write.format("delta").save(str(case.table("events")))
    with pytest.raises(NeverIncrementalizable, match=reason) as refused:
        case.manifest()
    assert refused.value.where


def test_rules_that_ask_the_clock(pipeline: Any, spark: Any) -> None:
    """Which rows a rule keeps out may be others tomorrow: only rules that choose rows say so, and such a view is looked at each time, as is one that reads a day which its source took when it was loaded."""
    text = """
import datetime
TODAY = datetime.date.today()

@dp.materialized_view
def loaded():
    return spark.read.table("events").where(F.col("day") <= F.lit(TODAY))

@dp.materialized_view
@dp.expect_or_drop("known", "day <= 'today' or k < 1")
def chosen():
    return spark.read.table("events")

@dp.materialized_view
@dp.expect("counted", "day <= current_date()")
@dp.expect_or_drop("dated", "day <= date'2026-01-01'")
def counted():
    return spark.read.table("events")
"""
    case: PipelineCase = pipeline(text)
    spark.sql("select 1 k, date'2026-01-01' day").write.format("delta").save(str(case.table("events")))
    assert {flow.name: flow.time_dependent for flow in case.manifest().flows} == {
        "chosen": True,
        "counted": False,
        "loaded": True,
    }
    case.rewrite(text.replace("materialized_view\n", 'materialized_view(refresh_policy="incremental")\n'))
    with pytest.raises(NeverIncrementalizable, match="TIME_FUNCTION") as refused:
        case.manifest()
    assert "'known'" in str(refused.value)


GROUPED = {
    "tried": "select k, try_sum(v) v, count(*) n from events group by k",
    "rolled": "select k, day, sum(v) v from events group by rollup(k, day)",
    "sets": "select k, day, grouping_id() g, count(*) n from events group by grouping sets ((k, day), (k), ())",
    "unpivoted": "select k, c, x from events unpivot (x for c in (v, w))",
    "pivoted": "select * from (select k, day, v from events) pivot (sum(v) for k in (0 as a, 1 as b))",
    "coded": "select code, sum(v) v from coded_events where length(code) > 0 group by code",
    "of_coded": "select k, sum(v) v from coded_events group by k",
    "of_codes": "select c.code, e.v from coded_events c join events e on c.k = e.k",
    "without_ansi": "select k, sum(v) v, count(*) n from events group by k",
}
# Those whose rows are compared after a change, with their techniques.
FOLLOWED = {
    "rolled": "GENERIC_AGGREGATE",
    "unpivoted": "ROW_BASED",
    "of_coded": "GENERIC_AGGREGATE",
    "of_codes": "ROW_BASED",
}
SETTINGS = {"without_ansi": ", spark_conf={'spark.sql.ansi.enabled': 'false'}"}


def test_columns_that_a_view_does_not_use(pipeline: Any, spark: Any) -> None:
    """A source gets a column more, and a comment: groups and totals, and rows made of columns, are left alone, and are followed as ever."""
    declared = "".join(
        f"@dp.materialized_view(refresh_policy='incremental'{SETTINGS.get(name, '')})\ndef {name}():\n    return spark.sql('{text}')\n"
        for name, text in GROUPED.items()
    )
    case: PipelineCase = pipeline(declared)
    table = f"delta.`{case.table('events')}`"
    coded = f"delta.`{case.table('coded_events')}`"
    spark.sql(f"create table {table} (k bigint, day date, v bigint, w bigint, code string) using delta")
    spark.sql(f"insert into {table} select id % 3, date'2026-01-01', id, -id, 'c' from range(9)")
    # Whoever reads it fills up the texts: of all columns, one by one.
    spark.sql(f"create table {coded} (k bigint, v bigint, code char(3)) using delta")
    spark.sql(f"insert into {coded} select id % 3, id, id from range(9)")
    assert case.update().state == "COMPLETED"
    for one in (table, coded):
        spark.sql(f"alter table {one} add column (more int)")
        spark.sql(f"alter table {one} alter column v comment 'what it costs'")
    assert planned(case, case.update()) == dict.fromkeys(GROUPED, "NO_OP")
    for one in (table, coded):
        spark.sql(f"update {one} set v = 10, k = 2, more = 1 where v = 1")
    taken = planned(case, case.update(tables=tuple(FOLLOWED)))
    assert taken == FOLLOWED
    assert case.rows("rolled", "v", "1")[-1] == (45,)
    # The others are of the same kinds: a group, one of several sets of columns, one of filled up texts.
    with case.resolved() as resolved:
        others = GROUPED.keys() - FOLLOWED.keys()
        (known,) = zip(
            *(incremental_entry(resolved, resolved.dataset(one)).sources for one in others), strict=True
        )
    assert {str(source.rows_changed) for source in known} == {"GENERIC_AGGREGATE"}
    added = {name: str(source.rows_added) for name, source in zip(others, known, strict=True)}
    # Nothing is added to a sum that may have been too large, and nobody says so before.
    assert (added["tried"], added["without_ansi"]) == ("GENERIC_AGGREGATE", "GENERIC_AGGREGATE")
    assert sorted(case.rows("unpivoted", "x", "1"))[-1] == (10,)
    assert sorted(case.rows("of_coded", "k, v")) == [(0, 9), (1, 11), (2, 25)]
    assert ("1  ", 10) in case.rows("of_codes", "code, v")
