"""Values that are equal and not the same, texts that a partition has no place for, sums of many digits: views stay their query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.integration.test_refreshes_of_views_say_why import planned
from tests.pipeline_case import PipelineCase
from tests.rows_in_memory import rows_in_memory

from headwater_spark.resolution.incremental_views import incremental_entry

# Queries over tables with such values, the columns that the view is partitioned by, and its techniques: rows came, rows changed.
VIEWS: dict[str, tuple[str, list[str], str, str]] = {
    "signs": ("select id, cast(g as string) t from odd", [], "APPEND_ONLY", "ROW_BASED"),
    "zeros": ("select k, cast(g as string) t, count(*) n from odd group by k, g", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "windows": ("select id, k, cast(g as string) t, count(*) over (partition by k, g) n from odd", [], "WINDOW_FUNCTION", "WINDOW_FUNCTION"),
    "pairs": ("select a.id x, b.id y, cast(a.g as string) t from odd a join odd b on a.g = b.g and a.k = b.k and a.id < b.id", [], "ROW_BASED", "ROW_BASED"),
    "sessions": ("select session_window.start s, k, count(*) n from odd group by session_window(ts, '10 minutes'), k", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "sums": ("select k, sum(m) s, count(*) n from odd group by k", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "collated": ("select day, length(c) h, count(*) n from odd group by day, length(c), c collate utf8_lcase", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "texts_of_zeros": ("select day, cast(cast(if(id in (1, 3), '0', '-0') as double) as string) t, count(*) n from odd group by day, cast(if(id in (1, 3), '0', '-0') as double)", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "seen": ("select day, max(id) > 0 seen from odd group by day", [], "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "rows_by_text": ("select id, k from odd where id > 1", ["k"], "APPEND_ONLY", "PARTITION_OVERWRITE"),
    "groups_by_text": ("select k, count(*) n from odd group by k", ["k"], "PARTITION_OVERWRITE", "PARTITION_OVERWRITE"),
    "total": ("select count(*) n, sum(id) i, min(day) f, max(k) k, count(k) ks from odd", [], "GROUP_AGGREGATE", "COMPLETE_RECOMPUTE PLAN_NOT_INCREMENTALIZABLE"),
    "total_of_few": ("select sum(id) i, count(*) n, max(ts) t from odd where id between 7 and 8", [], "GROUP_AGGREGATE", "COMPLETE_RECOMPUTE PLAN_NOT_INCREMENTALIZABLE"),
    # A query with bytes is the same one in each update, though Java prints them as where they lie.
    "bytes": ("select id, v.b, X'02' x from odd join values ('a', X'01'), ('b', X'0203') v(k2, b) on odd.k = v.k2 where cast(c as binary) <> X'00'", [], "APPEND_ONLY", "ROW_BASED"),
    "far_days": ("select day, count(*) n from odd group by day", [], "GROUP_AGGREGATE", "GENERIC_AGGREGATE"),
}  # fmt: skip
# Where rows that came take another technique than rows that changed, or the refresh itself finds out that they may not be merged. The
# others are asked which technique it would be, and take those rows in together with what changed then.
ON_GROWTH = {name for name, (_, _, came, changed) in VIEWS.items() if came != changed} | {
    "sums",
    "groups_by_text",
}
SOURCE = """
VIEWS = {views!r}

def declare(name, text, partitions):
    # Of a view with a change feed, rows that were recomputed and are what they were are not written: the next update finds no damage.
    properties = {{"delta.enableChangeDataFeed": "true"}} if name in ("seen", "total") else {{}}
    @dp.materialized_view(name=name, refresh_policy="incremental", partition_cols=partitions or None, table_properties=properties)
    def view():
        return spark.sql(text)

for name, (text, partitions, *_) in VIEWS.items():
    declare(name, text, partitions)
"""
FOLDER = "__HIVE_DEFAULT_PARTITION__"
ROW = "{id}L id, {k} k, double('{g}') g, cast({m} as decimal(38,10)) m, {c} c, date'2026-01-01' + {day} day, timestamp'2026-01-01 00:00:00' + make_dt_interval(0, 0, {ts}) ts"


def rows(*values: tuple[Any, ...]) -> str:
    """A query that gives rows of these values."""
    names = ("id", "k", "g", "m", "c", "day", "ts")
    return " union all ".join(f"select {ROW.format(**dict(zip(names, one, strict=True)))}" for one in values)


def bags(spark: Any, queries: dict[str, str]) -> dict[str, Counter[str]]:
    """The rows of queries as JSON, which leaves NULL out; two texts are stored as NULL where they are a partition."""
    every = [
        f"select '{name}' name, to_json(struct(*)) row from ({query})" for name, query in queries.items()
    ]
    found: dict[str, Counter[str]] = {name: Counter() for name in queries}
    for name, row in spark.sql(" union all ".join(every)).collect():
        text = row.replace('"k":""', "").replace(f'"k":"{FOLDER}"', "")
        found[name][text.replace("{,", "{").replace(",,", ",").replace(",}", "}")] += 1
    return found


def test_views_of_odd_values(pipeline: Any, spark: Any) -> None:
    """After rows came (where that is another technique) and after rows changed: each view is what its query gives, by the technique that is expected."""
    case: PipelineCase = pipeline(SOURCE.format(views=VIEWS))
    table = f"delta.`{case.table('odd')}`"
    spark.sql(
        f"create table {table} (id bigint, k string, g double, m decimal(38,10), c string, day date, ts timestamp) using delta"
    )
    first = rows(
        (1, "'a'", "0.0", "1234567890123456.0000000001", "'x'", 0, 0), (2, "'a'", "-0.0", "0.0000000003", "'x'", 0, 8), (3, "''", "NaN", "1", "'y'", 1, 0),
        (4, "null", "0.0", "2", "'X'", 9_000_000, 30), (5, "'b'", "-0.0", "0.0000000005", "'Y'", 1, 16), (6, "'b'", "0.0", "7", "'y'", 2, 40),
        (10, f"'{FOLDER}'", "2.5", "1", "'q'", 3, 50),
    )  # fmt: skip
    spark.sql(f"insert into {table} {first}")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    came = rows(
        (7, "'a'", "-0.0", "0.0000000002", "'X'", 0, 15),
        (8, "''", "0.0", "3", "'z'", 0, 5),
        (9, "null", "1.5", "4", "'x'", 1, 34),
    )
    spark.sql(f"insert into {table} {came}")
    with case.resolved() as resolved:
        for name in VIEWS.keys() - ON_GROWTH:
            (source,) = incremental_entry(resolved, resolved.dataset(name)).sources
            assert source.rows_added == VIEWS[name][2], name
    report = case.update(tables=tuple(ON_GROWTH))
    assert planned(case, report) == {name: VIEWS[name][2] for name in ON_GROWTH}
    check(spark, case, ON_GROWTH)
    spark.sql(
        f"update {table} set g = if(id = 8, -g, if(id = 3, g, double('-0.0'))), k = case id when 8 then k when 3 then null else 'b' end, "
        "c = if(id = 3, 'Y', c), ts = if(id in (1, 6), ts + interval 3 minutes, ts) where id in (1, 3, 6, 8)"
    )
    spark.sql(f"delete from {table} where id in (2, 9)")
    report = case.update()
    assert planned(case, report) == {name: view[3] for name, view in VIEWS.items()}
    check(spark, case, VIEWS)


def check(spark: Any, case: PipelineCase, names: Iterable[str]) -> None:
    """These views are what their queries give."""
    for name in ("odd", *names):
        rows_in_memory(spark, case.table(name)).createOrReplaceTempView(name)
    wanted = bags(spark, {name: VIEWS[name][0] for name in names})
    there = bags(spark, {name: f"select * from {name}" for name in names})
    assert {name: (there[name] - rows, rows - there[name]) for name, rows in wanted.items() if there[name] != rows} == {}  # fmt: skip
    assert all(wanted.values())
