"""Queries of many shapes over sources that change: what a refresh would write makes of the old rows the new ones.

No view is written here: the rows before, what the refresh would put in place of which of them, and the query's own result are compared.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.integration.composed_queries import composed
from tests.integration.star_changes import CHANGES
from tests.integration.star_schema import PARTITIONS, VIEWS, Star
from tests.rows_in_memory import rows_in_memory
from tests.seeds import SEED, SOAK

from headwater.delta_log.versions import TableHead, table_head
from headwater.incremental.costs import Limits
from headwater.incremental.source_changes import ChangeKind, SourceChange, changes_between
from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater_spark.views import changed_rows
from headwater_spark.views.appended_rows import Merging
from headwater_spark.views.changed_rows import FilesMissing
from headwater_spark.views.examined_query import ExaminedQuery, NotedTable, examine
from headwater_spark.views.plan_shape import shape_issues
from headwater_spark.views.shared_changes import SharedChanges
from headwater_spark.views.techniques import Increment, Techniques

FULL = "COMPLETE_RECOMPUTE"
# Whether a query may ever be refreshed by what changed. None: only as long as what a subquery reads stays.
QUERIES: dict[str, tuple[str, bool]] = {
    "cte twice": ("with d as (select day, store_id, sum(amount) a from sales group by day, store_id) select x.day, x.store_id, x.a, y.a b from d x left join d y on x.day = date_add(y.day, 1) and x.store_id = y.store_id", True),
    "cte of a cte": ("with d as (select cust_id, day, qty from sales where qty > 1), e as (select cust_id, max(day) l from d group by cust_id) select d.cust_id, d.day, d.qty from d join e on d.cust_id = e.cust_id and d.day = e.l", True),
    "one source twice in a union": ("select cust_id, 'a' k from sales where qty > 4 union all select cust_id, 'b' from sales where qty < 3", True),
    "union of distinct rows": ("select cust_id, store_id from sales union select cust_id, 0 from customer", True),
    "union of wider types": ("select cast(qty as bigint) x, day from sales union all select qty, day from returns", True),
    "exists": ("select cust_id, name from customer c where exists (select 1 from sales s where s.cust_id = c.cust_id and s.qty > 5)", True),
    "not exists": ("select cust_id, name from customer c where not exists (select 1 from sales s where s.cust_id = c.cust_id)", True),
    "not in": ("select cust_id, name from customer where cust_id not in (select cust_id from sales where qty = 8)", True),
    "not in without nulls": ("select cust_id, name from customer where cust_id not in (select cust_id from sales where cust_id is not null)", True),
    "scalar subquery": ("select sale_id, amount from sales where amount > (select avg(list_price) from product)", True),
    "beside the mean of all": ("select return_id, day from returns where qty > (select avg(qty) from sales)", True),
    "correlated scalar": ("select c.cust_id, c.name, (select max(amount) from sales s where s.cust_id = c.cust_id) m from customer c", True),
    "subquery in an aggregate": ("select store_id, sum(amount) / (select count(*) from product) x from sales group by store_id", True),
    "intersect": ("select cust_id from sales intersect select cust_id from customer", True),
    "intersect all": ("select store_id, prod_id from sales where qty > 3 intersect all select store_id, prod_id from sales where qty < 7", True),
    "except": ("select cust_id from customer except select cust_id from sales where qty > 2", True),
    "except all": ("select prod_id from sales except all select prod_id from product", True),
    "full outer of groups": ("with s as (select day, sum(qty) q from sales group by day), r as (select day, sum(qty) q from returns group by day) select coalesce(s.day, r.day) day, s.q, r.q rq from s full outer join r on s.day = r.day", True),
    "full outer using": ("select sale_id, s.qty, r.return_id from sales s full outer join returns r using (sale_id)", True),
    "full outer of sides": ("select c.cust_id, c.name, s.sale_id from customer c full outer join sales s on c.cust_id = s.cust_id and s.qty > 3", True),
    "right join": ("select s.sale_id, c.cust_id, c.city from sales s right join customer c on s.cust_id = c.cust_id", True),
    "only the filled up side": ("select c.city, c.segment from sales s left join customer c using (cust_id)", True),
    "left join of groups": ("select st.store_id, st.region, t.n from store st left join (select store_id, count(*) n from sales group by store_id) t on st.store_id = t.store_id", True),
    "null safe join": ("select s.sale_id, st.region from sales s join store st on s.store_id <=> st.store_id", True),
    "join without an equality": ("select s.sale_id, p.prod_id from sales s join product p on s.amount > p.list_price and s.qty = 8", True),
    "cross join": ("select st.store_id, p.prod_id from store st cross join product p", True),
    "cross join of a total": ("select s.day, sum(s.qty) q, max(t.n) n from sales s cross join (select count(*) n from store) t group by s.day", True),
    "self join by a range": ("select a.sale_id x, b.sale_id y from sales a join sales b on a.cust_id = b.cust_id and b.ts > a.ts and b.ts < a.ts + interval 1 hour", True),
    "self join of groups": ("select a.day, a.n, b.n before from (select day, count(*) n from sales group by day) a left join (select day, count(*) n from sales group by day) b on b.day = date_sub(a.day, 1)", True),
    "three joins and a group": ("select p.category, st.country, s.day, count(*) n, min(c.city) c from sales s join product p using (prod_id) left join store st using (store_id) left join customer c using (cust_id) group by p.category, st.country, s.day", True),
    "group by an expression": ("select date_trunc('week', ts) w, upper(status) st, count(*) n from sales group by 1, 2", True),
    "group by a renamed key": ("select k, n from (select concat('c', cust_id) k, count(*) n from sales group by concat('c', cust_id))", True),
    "group with a filter": ("select day, count(*) filter (where qty > 3) n, sum(qty) filter (where status is null) q from sales group by day", True),
    "counts of columns": ("select store_id, count(cust_id) n, count(status) m, count(cust_id, status) b from sales group by store_id", True),
    "total": ("select count(*) n, sum(amount) m, min(day) f, max(qty) q from sales", True),
    "total of some": ("select sum(qty) q, count(status) n from sales where qty > 7", True),
    "mean": ("select avg(amount) m from sales", False),
    "total with a name": ("select 'all' k, count(*) n, sum(amount) m from sales", True),
    "having": ("select cust_id, sum(qty) q from sales group by cust_id having sum(qty) > 20 and max(day) > date'2026-01-04'", True),
    "grouping sets": ("select day, store_id, count(*) n from sales group by grouping sets ((day), (day, store_id))", True),
    "cube": ("select day, store_id, sum(qty) q from sales group by cube(day, store_id)", True),
    "rollup with its id": ("select day, store_id, grouping_id() g, sum(qty) q, count(*) n from sales group by rollup(day, store_id)", True),
    "pivot": ("select * from (select day, status, qty from sales) pivot (sum(qty) for status in ('new' as a, 'NEW' as b))", True),
    "unpivot": ("select * from (select sale_id, qty, prod_id from sales) unpivot (v for k in (qty, prod_id))", True),
    "lateral view": ("select sale_id, day, p, t from sales lateral view outer posexplode(tags) x as p, t", True),
    "exploded and counted": ("select t, count(*) n from sales lateral view explode(tags) x as t group by t", True),
    "lateral join": ("select c.cust_id, x.m from customer c, lateral (select max(s.amount) m from sales s where s.cust_id = c.cust_id) x", True),
    "lateral explode": ("select s.sale_id, s.day, t.tag from sales s, lateral explode(s.tags) as t(tag)", True),
    "ranks": ("select * from (select sale_id, day, store_id, rank() over (partition by day, store_id order by amount desc) r, dense_rank() over (partition by day order by amount) d from sales) where r <= 2", True),
    "frames": ("select store_id, sale_id, ts, sum(qty) over (partition by store_id order by ts, sale_id rows between 2 preceding and current row) a, avg(amount) over (partition by store_id order by ts range between interval 1 day preceding and current row) b from sales", True),
    "lead and lag": ("select cust_id, sale_id, lead(qty, 1, -1) over (partition by cust_id order by ts, sale_id) a, first_value(day) over (partition by cust_id order by ts, sale_id) f, last_value(qty) over (partition by cust_id order by ts, sale_id rows between unbounded preceding and unbounded following) l, nth_value(qty, 2) over (partition by cust_id order by ts, sale_id) n from sales", True),
    "lists in order": ("select cust_id, sale_id, collect_list(qty) over (partition by cust_id order by ts, sale_id) a from sales", True),
    "share of a group": ("select day, sale_id, amount / sum(amount) over (partition by day) s from sales", True),
    "window over groups": ("select store_id, day, q, sum(q) over (partition by store_id order by day) r from (select store_id, day, sum(qty) q from sales group by store_id, day)", True),
    "window without a partition": ("select sale_id, row_number() over (order by ts, sale_id) n from sales", False),
    "window by an expression": ("select sale_id, ts, row_number() over (partition by cust_id % 3 order by ts, sale_id) n from sales", False),
    "window by a month in the result": ("select date_trunc('month', ts) m, year(day) y, sale_id, row_number() over (partition by date_trunc('month', ts), year(day) order by ts, sale_id) n, sum(qty) over (partition by year(day)) q from sales", True),
    "window by a renamed column": ("select cust_id customer, sale_id, row_number() over (partition by cust_id order by ts, sale_id) n from sales", True),
    "running sum of renamed groups": ("select store_id shop, day, sum(sum(qty)) over (partition by store_id order by day) r from sales group by store_id, day", True),
    "qualified": ("select * from (select s.*, row_number() over (partition by cust_id, prod_id order by ts desc, sale_id) rn from (select sale_id, cust_id, prod_id, ts, qty from sales) s) where rn = 1 and qty > 1", True),
    "groups over a window": ("select cust_id, count(*) n from (select cust_id, row_number() over (partition by cust_id order by ts, sale_id) rn from sales) where rn <= 3 group by cust_id", True),
    "distinct and counted": ("select day, count(distinct cust_id, prod_id) n, count(distinct store_id) m from sales group by day", True),
    "medians": ("select store_id, median(qty) m, percentile(qty, 0.9) p, approx_count_distinct(cust_id) a from sales group by store_id", False),
    "latest by max_by": ("select cust_id, max_by(sale_id, struct(ts, sale_id)) l, count_if(qty > 3) c, bool_or(qty > 7) b from sales group by cust_id", True),
    "structs and maps": ("select sale_id, named_struct('q', qty, 'd', day) s, map('a', qty) m, array(qty, prod_id) l from sales", True),
    "grouped by a struct": ("select named_struct('d', day) s, count(*) n from sales group by named_struct('d', day)", False),
    "only floats": ("select price from sales where price > 5", True),
    "floats beside a key": ("select sale_id, price, price * 0.0 z from sales", True),
    "case and nulls": ("select sale_id, case when qty > 5 then 'big' when qty is null then null else status end k, nullif(qty, 3) q from sales", True),
    "times": ("select ts, date_format(ts, 'HH') h, cast(ts as timestamp_ntz) n, qty from sales", True),
    "boolean keys": ("select qty > 4 big, amount < 0 neg, count(*) n from sales group by qty > 4, amount < 0", True),
    "decimal keys": ("select amount, count(*) n, sum(qty) q from sales group by amount", True),
    "limit": ("select sale_id from sales order by amount, sale_id limit 5", False),
    "sample": ("select sale_id from sales tablesample (50 percent) repeatable (1)", False),
    "chance": ("select sale_id, rand() r from sales", False),
    "clock in a rollup": ("select day, current_date() d, count(*) n from sales group by rollup(day, current_date())", False),
    "chance in an order": ("select sale_id from sales order by rand()", False),
    "stacked": ("select sale_id, day, stack(2, 'q', qty, 'p', prod_id) as (k, v) from sales", True),
    "subtotals of a day": ("select day, store_id, status, count(*) n from sales group by day, rollup(store_id, status)", True),
    "distinct on": ("select cust_id, max_by(struct(day, qty), struct(ts, sale_id, qty)) l from sales group by cust_id", True),
    "clock": ("select sale_id from sales where day < current_date()", False),
    "any value": ("select store_id, first(qty) q, any_value(day) d from sales group by store_id", False),
    "bare lists": ("select store_id, collect_list(qty) q from sales group by store_id", False),
    "sorted lists": ("select store_id, sort_array(collect_list(qty)) q, size(collect_set(day)) d from sales group by store_id", True),
    "where rows lie": ("select sale_id, input_file_name() f from sales", False),
    "values beside a table": ("select v.k, count(*) n from (values (1, 'a'), (2, 'b')) v(i, k) join sales s on s.prod_id = v.i group by v.k", True),
    "recursive": ("with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select r.n, s.sale_id from r join sales s on s.qty = r.n", False),
    "sorted": ("select sale_id, day from sales order by day", True),
    "nothing passes": ("select sale_id, day from sales where 1 = 0", True),
    "a constant": ("select distinct 1 one from sales where qty > 7", True),
    "listed with commas": ("select p.category, st.region, avg(s.qty) q, count(distinct c.city) n from store st, product p, customer c, sales s where s.prod_id = p.prod_id and s.store_id = st.store_id and s.cust_id = c.cust_id and s.qty > 1 group by p.category, st.region", True),
    "commas and an outer join": ("select p.category, r.return_id, s.sale_id from product p, sales s left join returns r on r.sale_id = s.sale_id where s.prod_id = p.prod_id and p.list_price > 3", True),
    "semi and anti": ("select s.sale_id, s.day from sales s left semi join store st on s.store_id = st.store_id left anti join returns r on r.sale_id = s.sale_id", True),
    "anti of groups": ("select day, count(*) n from sales s left anti join (select cust_id from sales group by cust_id having count(*) > 12) b on s.cust_id = b.cust_id group by day", True),
    **{name: (view.text, view.changed != FULL) for name, view in VIEWS.items() if name != "over_a_view"},
}  # fmt: skip

# Queries put together at random that make test has, by their seeds.
COMPOSED = (1, 5, 13)
# Changes after which most queries have other rows.
SURE = ("appended", "late rows", "updated", "keys moved", "keys became null", "deleted", "merged", "decimals", "duplicates", "appended and deleted")  # fmt: skip
# A composed query with more rows than this is left out.
MOST_ROWS = 20_000
# What is done to the sources in make test, to each by one statement.
AT_ONCE = [
    "update {sales} set cust_id = 17, day = date_add(day, 1), store_id = 5 where sale_id % 60 = 17",
    "update {customer} set segment = 's7', city = null where cust_id % 8 = 3",
    "update {store} set region = if(region = 'r1', null, 'r1'), country = 'AT' where store_id % 3 = 1",
    "delete from {returns} where return_id % 9 = 4",
]
# Of each kind of plan one, in make test: what it takes where rows of all its sources were changed.
SAMPLE = {
    "cte twice": "ROW_BASED",
    "except": "GENERIC_AGGREGATE",
    "full outer of sides": "ROW_BASED",
    "left join of groups": "ROW_BASED",
    "listed with commas": "GENERIC_AGGREGATE",
    "running sum of renamed groups": "WINDOW_FUNCTION",
    "latest by max_by": "GENERIC_AGGREGATE",
    "composed 1": "WINDOW_FUNCTION",
    "composed 5": "GENERIC_AGGREGATE",
    "composed 13": "ROW_BASED",
    "not exists": "ROW_BASED",
    "beside the mean of all": f"{FULL} SUBQUERY_EXPRESSION",
    "rollup with its id": "GENERIC_AGGREGATE",
    "lateral explode": "ROW_BASED",
    "where rows lie": f"{FULL} PLAN_NOT_DETERMINISTIC (NON_DETERMINISTIC_EXPRESSION)",
}


class Shop:
    """The star's tables, and queries over two states of them."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, *, mixed: bool) -> None:
        self.spark = spark
        self.star = Star(spark, folder, seed, mixed=mixed)
        self.star.make()
        # Every other query takes its changed rows from a look that is made once for all of them.
        self.shared = SharedChanges()
        self.shared.expect({self.star.folder / name: 2 for name in PARTITIONS})
        self._kept: dict[tuple[str, TableHead], DataFrame] = {}

    def heads(self) -> dict[str, TableHead]:
        """How the tables stand; their rows are kept, whatever becomes of the files."""
        found = {name: table_head(self.star.folder / name) for name in PARTITIONS}
        heads = {name: head for name, head in found.items() if head is not None}
        for one in heads.items():
            if one not in self._kept:
                self._kept[one] = rows_in_memory(self.spark, self.star.folder / one[0])
        return heads

    def rows(self, text: str, heads: Mapping[str, TableHead]) -> DataFrame:
        """What a query gives over the tables as they stood."""
        for name, head in heads.items():
            self._kept[name, head].createOrReplaceTempView(name)
        return self.spark.sql(text)

    def frame(self, text: str, heads: Mapping[str, TableHead]) -> DataFrame:
        """A query over given versions, as a refresh reads them."""
        for name, head in heads.items():
            reader = self.spark.read.format("delta").option("versionAsOf", str(head.version))
            reader.load(str(self.star.folder / name)).createOrReplaceTempView(name)
        return self.spark.sql(text)


def refreshed(
    shop: Shop, text: str, before: Mapping[str, TableHead], after: Mapping[str, TableHead], old: DataFrame
) -> tuple[str, DataFrame | None]:
    """The technique that a refresh would take, and the view's rows after it; None where it recomputes."""
    noted = [NotedTable(name, shop.star.folder / name, head) for name, head in after.items()]
    query = examine(shop.frame(text, after), noted, (), "")
    assert query.sources is not None
    issues = shape_issues(query.plan.root, query.plan.undetermined())
    if issues:
        return f"{FULL} {issues[0].name}", None
    changes: dict[str, SourceChange] = {}
    for key, table in query.noted.items():
        if before[key].table_id != table.head.table_id:
            return f"{FULL} made anew", None
        change = changes_between(
            table.folder, before[key].version, table.head.version, query.columns_of(key), key
        )
        if isinstance(change, Issue):
            return f"{FULL} {change.name}", None
        changes[key] = change
    moved = {key for key, change in changes.items() if change.kind is not ChangeKind.UNCHANGED}
    if not moved:
        return "NO_OP", old
    if moved & query.in_subqueries:
        return f"{FULL} SUBQUERY_EXPRESSION", None
    return _increment(query, changes, old, shop.shared if len(text) % 2 else None)


def _increment(
    query: ExaminedQuery, changes: Mapping[str, SourceChange], old: DataFrame, shared: SharedChanges | None
) -> tuple[str, DataFrame | None]:
    stored = {field.name.lower(): field.dataType.simpleString() for field in query.plan.frame.schema.fields}
    techniques = Techniques(query, changes, Path("no view yet"), stored, (), (), Limits(), shared)
    chosen = techniques.choose(judged=False)
    # Two of three queries tell changed rows by digests, as of large files.
    least = 0 if len(query.plan.text) % 3 else changed_rows.DIGESTED_BYTES
    with patch.object(changed_rows, "DIGESTED_BYTES", least):
        increment = chosen if isinstance(chosen, Issue) else techniques.increment(chosen)
    if isinstance(increment, Issue):
        return f"{FULL} {increment.name}", None
    return str(increment.technique), _applied(increment, old)


def _applied(increment: Increment, old: DataFrame) -> DataFrame:
    if increment.rows is None:
        return old
    if increment.technique is Technique.APPEND_ONLY:
        return old.union(increment.rows)
    if increment.technique is Technique.GROUP_AGGREGATE:
        made = {Merging.COUNT: F.sum, Merging.SUM: F.sum, Merging.LEAST: F.min, Merging.GREATEST: F.max}
        keys = [F.col(f"`{name}`") for name, how in increment.merging if how is Merging.KEY]
        both = old.union(increment.rows).groupBy(*keys)
        merged = both.agg(
            *(made[how](f"`{n}`").alias(n) for n, how in increment.merging if how is not Merging.KEY)
        )
        return merged.select(
            *(F.col(f"`{name}`").cast(old.schema[name].dataType) for name, _ in increment.merging)
        )
    stays = old.where(f"not coalesce({increment.condition}, false)")
    return stays.union(increment.rows)


def checked(
    shop: Shop, text: str, before: Mapping[str, TableHead], after: Mapping[str, TableHead]
) -> tuple[str, tuple[list[str], list[str]] | None]:
    """The technique that a refresh would take, and the rows that it leaves too many and too few, None where there are none."""
    # The rows of a table that was made anew are gone: who reads it is recomputed, and nobody else looks at it.
    there_yet = {
        name: head if head.table_id == after[name].table_id else after[name] for name, head in before.items()
    }
    try:
        technique, rows = refreshed(shop, text, before, after, shop.rows(text, there_yet))
        if rows is None:
            return technique, None
        wanted = bag(shop.rows(text, after).limit(MOST_ROWS + 1))
        if wanted.total() > MOST_ROWS:
            return "left out", None
        there = bag(rows)
    except FilesMissing:  # a refresh recomputes the view then
        return f"{FULL} {IssueType.DATA_FILE_MISSING}", None
    if there == wanted:
        return technique, None
    return technique, (list((there - wanted).elements())[:3], list((wanted - there).elements())[:3])


def bag(frame: DataFrame) -> Counter[str]:
    """The rows, each as often as it is there."""
    return Counter(repr(tuple(row.values())) for row in frame.toArrow().to_pylist())


def _chosen() -> dict[str, tuple[str, bool]]:
    pattern = os.environ.get("HEADWATER_QUERIES")
    made = {} if SOAK else {f"composed {seed}": (composed(seed), True) for seed in COMPOSED}
    return {
        name: query
        for name, query in {**QUERIES, **made}.items()
        if (re.search(pattern, name) if pattern else SOAK or name in SAMPLE)
    }


@pytest.mark.timeout(7200 if SOAK else 300)
def test_queries_and_changes(spark: SparkSession, tmp_path: Path) -> None:
    """After each step, each query: old rows with the refresh's in place of what it replaces are the query's rows."""
    steps = int(os.environ.get("HEADWATER_VIEW_STEPS") or (12 if SOAK else 1))
    pick = random.Random(SEED)
    if SOAK:
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    shop = Shop(spark, tmp_path, SEED, mixed=SOAK)
    queries = _chosen()
    taken: dict[str, Counter[str]] = {name: Counter() for name in queries}
    wrong = []
    for number in range(steps):
        before = shop.heads()
        names = [pick.choice(list(CHANGES)) for _ in range(pick.randint(1, 3))] if SOAK else AT_ONCE
        for name in names:
            try:
                CHANGES[name](shop.star) if SOAK else shop.star.run(name)
            except Exception as error:
                print(f"step {number}: {name} was not possible: {str(error)[:150]}")
        after = shop.heads()
        for name, (text, _) in queries.items():
            try:
                technique, differs = checked(shop, text, before, after)
            except Exception as error:
                taken[name][f"failed: {type(error).__name__} {str(error)[:200]}"] += 1
                print(f"step {number}, {name}: failed: {type(error).__name__} {str(error)[:300]}", flush=True)
                continue
            taken[name][technique] += 1
            print(f"step {number}, {name}: {technique}", flush=True)
            if differs is not None:
                wrong.append((number, names, name, technique, *differs))
                print("WRONG", wrong[-1], flush=True)
    for name, techniques in taken.items():
        print(f"{name:30} {dict(techniques)}")
    assert wrong == []
    assert not [one for techniques in taken.values() for one in techniques if one.startswith("failed")]
    if not SOAK and set(taken) == set(SAMPLE):
        assert {name: next(iter(techniques)) for name, techniques in taken.items()} == SAMPLE
    elif steps > 5:
        full = {name for name, techniques in taken.items() if all(one.startswith(FULL) for one in techniques)}
        assert {name for name in full if queries[name][1]} == set()
    never = {name: techniques for name, techniques in taken.items() if not queries[name][1]}
    assert not [
        name
        for name, techniques in never.items()
        if not all(one.startswith((FULL, "NO_OP")) for one in techniques)
    ]


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not SOAK, reason="a loop of make soak, which gives the seed")
def test_composed_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Queries put together at random, others in each step: rows are right, and most are not recomputed."""
    steps, each = (
        int(os.environ.get("HEADWATER_VIEW_STEPS") or 12),
        int(os.environ.get("HEADWATER_VIEW_QUERIES") or 40),
    )
    pick = random.Random(SEED)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    shop = Shop(spark, tmp_path, SEED, mixed=True)
    # Whose files are gone is recomputed, whatever it is.
    kinds = [name for name in CHANGES if "vacuumed" not in name]
    taken: Counter[str] = Counter()
    wrong = []
    for step in range(steps):
        before = shop.heads()
        names = [pick.choice(SURE), *(pick.choice(kinds) for _ in range(pick.randint(0, 2)))]
        for name in names:
            try:
                CHANGES[name](shop.star)
            except Exception as error:
                print(f"step {step}: {name} was not possible: {str(error)[:150]}")
        after = shop.heads()
        for offset in range(each):
            number = SEED * 1_000_000 + step * each + offset
            text = composed(number)
            try:
                technique, differs = checked(shop, text, before, after)
            except Exception as error:
                technique, differs = f"failed: {type(error).__name__} {str(error)[:300]}", None
                print(f"step {step}, {number}: {technique}\n  {text}", flush=True)
            taken[technique] += 1
            if differs is not None:
                wrong.append((number, names, technique, *differs))
                print("WRONG", *wrong[-1], text, sep="\n  ", flush=True)
    print(*taken.most_common(), sep="\n")
    assert wrong == []
    assert not [one for one in taken if one.startswith("failed")]
    followed = sum(count for one, count in taken.items() if not one.startswith((FULL, "NO_OP")))
    assert followed > sum(count for one, count in taken.items() if one.startswith(FULL)), taken
