"""A small star schema as Delta tables, the changes that are made to it, and views over it with what is expected of them."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

ROWS = 400
SALES = (
    "sale_id bigint, day date, ts timestamp, cust_id bigint, prod_id int, store_id int, qty int, "
    "amount decimal(12,2), price double, status string, tags array<string>"
)


@dataclass(frozen=True)
class View:
    """A view, and the technique by what changed: sales grew (``grown``), sales changed (``changed``)."""

    text: str
    grown: str
    changed: str


FULL = "COMPLETE_RECOMPUTE"
VIEWS = {
    "selected": View("select sale_id, upper(status) st, amount*qty v from sales where qty > 2", "APPEND_ONLY", "ROW_BASED"),
    "exploded": View("select sale_id, day, t from sales lateral view explode(tags) x as t", "APPEND_ONLY", "ROW_BASED"),
    "united": View("select day, qty, 'S' k from sales union all select day, -qty, 'R' from returns", "APPEND_ONLY", "ROW_BASED"),
    "star": View("select s.sale_id, s.day, c.segment, p.category, st.region, s.amount from sales s join customer c using(cust_id) join product p using(prod_id) join store st using(store_id)", "APPEND_ONLY", "ROW_BASED"),
    "outer_joined": View("select s.sale_id, s.day, coalesce(c.city,'?') city from sales s left join customer c using(cust_id)", "APPEND_ONLY", "ROW_BASED"),
    "both_sides": View("select s.sale_id a, r.sale_id b, s.qty sq, r.qty rq from sales s full outer join returns r on s.sale_id = r.sale_id", "ROW_BASED", "ROW_BASED"),
    "semi_joined": View("select sale_id, day, amount from sales s left semi join returns r on s.sale_id = r.sale_id", "APPEND_ONLY", "ROW_BASED"),
    "anti_joined": View("select cust_id, name from customer c left anti join sales s on c.cust_id = s.cust_id", "ROW_BASED", "ROW_BASED"),
    "self_joined": View("select a.sale_id x, b.sale_id y, a.day from sales a join sales b on a.cust_id=b.cust_id and a.day=b.day and a.sale_id<b.sale_id", "ROW_BASED", "ROW_BASED"),
    "by_day": View("select day, store_id, count(*) n, sum(qty) q, sum(amount) m from sales group by day, store_id", "GROUP_AGGREGATE", "GENERIC_AGGREGATE"),
    "by_customer": View("select cust_id, min(ts) f, max(ts) l, count(*) n from sales group by cust_id", "GROUP_AGGREGATE", "GENERIC_AGGREGATE"),
    "segments": View("select c.segment, count(*) n, sum(s.amount) m, avg(s.amount) a from sales s join customer c using(cust_id) group by c.segment", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "sets": View("select cust_id, sort_array(collect_set(prod_id)) ps from sales group by cust_id", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "nested": View("select store_id, avg(m) a, max(m) x from (select store_id, day, sum(amount) m from sales group by store_id, day) group by store_id", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "rolled_up": View("select region, country, count(*) n, sum(amount) m from sales join store using(store_id) group by rollup(region, country)", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "distinct_customers": View("select s.day, st.region, count(distinct s.cust_id) u, sum(s.amount) m from sales s join store st using(store_id) group by s.day, st.region", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "floats": View("select prod_id, round(avg(price), 6) p, round(sum(price), 4) s from sales group by prod_id", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "having": View("select store_id, sum(amount)/count(*) r, case when sum(qty)>100 then 'big' else 'small' end k from sales group by store_id having count(*) > 3", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "pairs": View("select distinct cust_id, prod_id from sales", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "latest": View("select * from (select sale_id, cust_id, day, qty, row_number() over (partition by cust_id order by ts desc, sale_id desc) rn from sales) where rn = 1", "WINDOW_FUNCTION", "WINDOW_FUNCTION"),
    "running": View("select store_id, day, sale_id, sum(amount) over (partition by store_id, day order by ts, sale_id) run, lag(qty) over (partition by store_id order by ts, sale_id) prev from sales", "WINDOW_FUNCTION", "WINDOW_FUNCTION"),
    "shares": View("with d as (select s.day, p.category, sum(s.amount) a from sales s join product p using(prod_id) group by all), t as (select day, sum(a) ta from d group by day) select d.day, category, a, a/ta share from d join t using(day)", "ROW_BASED", "ROW_BASED"),
    "in_subquery": View("select prod_id, sum(qty) q from sales where store_id in (select store_id from store where country='AT') group by prod_id", "GROUP_AGGREGATE", "GENERIC_AGGREGATE"),
    "over_a_view": View("select region, max(m) top from distinct_customers group by region", "GENERIC_AGGREGATE", "GENERIC_AGGREGATE"),
    "topmost": View("select sale_id, amount from sales order by amount desc, sale_id limit 10", FULL, FULL),
    "today": View("select day, sum(amount) m from sales where day >= date_add(current_date(), -30) group by day", FULL, FULL),
}  # fmt: skip

# The same queries in Python.
FRAMES = {
    "selected": "spark.read.table('sales').where('qty > 2').select('sale_id', F.upper('status').alias('st'), (F.col('amount') * F.col('qty')).alias('v'))",
    "exploded": "spark.read.table('sales').select('sale_id', 'day', F.explode('tags').alias('t'))",
    "outer_joined": "spark.read.table('sales').join(spark.read.table('customer'), 'cust_id', 'left').select('sale_id', 'day', F.coalesce('city', F.lit('?')).alias('city'))",
    "anti_joined": "spark.read.table('customer').join(spark.read.table('sales'), 'cust_id', 'left_anti').select('cust_id', 'name')",
    "by_day": "spark.read.table('sales').groupBy('day', 'store_id').agg(F.count('*').alias('n'), F.sum('qty').alias('q'), F.sum('amount').alias('m'))",
    "by_customer": "spark.read.table('sales').groupBy('cust_id').agg(F.min('ts').alias('f'), F.max('ts').alias('l'), F.count('*').alias('n'))",
    "pairs": "spark.read.table('sales').select('cust_id', 'prod_id').distinct()",
    "sets": "spark.read.table('sales').groupBy('cust_id').agg(F.sort_array(F.collect_set('prod_id')).alias('ps'))",
    "latest": "spark.read.table('sales').select('sale_id', 'cust_id', 'day', 'qty', F.expr('row_number() over (partition by cust_id order by ts desc, sale_id desc)').alias('rn')).where('rn = 1')",
    "nested": "spark.read.table('sales').groupBy('store_id', 'day').agg(F.sum('amount').alias('m')).groupBy('store_id').agg(F.avg('m').alias('a'), F.max('m').alias('x'))",
    "rolled_up": "spark.read.table('sales').join(spark.read.table('store'), 'store_id').rollup('region', 'country').agg(F.count('*').alias('n'), F.sum('amount').alias('m'))",
    "topmost": "spark.read.table('sales').select('sale_id', 'amount').orderBy(F.desc('amount'), 'sale_id').limit(10)",
}
# What a source may have, and how its files may lie.
PARTITIONS = {"sales": "day", "returns": "day", "customer": "city", "product": "category", "store": "country"}
FORMS: dict[str, dict[str, str]] = {
    "plain": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed and vectors": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
    "tracked": {"delta.enableRowTracking": "true"},
    "mapped": {
        "delta.columnMapping.mode": "name",
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
    },
    "partitioned": {},
}


class Star:
    """The tables of one schema below ``folder``, and what changes them; ``seed`` decides which rows."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, *, mixed: bool = False) -> None:
        self.spark = spark
        self.folder = folder
        self.random = random.Random(seed)
        self.forms = {"sales": "vectors", "customer": "feed"}
        if mixed:
            self.forms = {name: self.random.choice(list(FORMS)) for name in PARTITIONS}
        self._next = 0

    def path(self, table: str) -> str:
        """The folder of a table, as SQL names it."""
        return f"delta.`{self.folder / table}`"

    def make(self) -> None:
        """Create the tables: one with a change feed, one with deletion vectors, the others plain; or mixed by the seed."""
        dims = {
            "customer": "select id cust_id, concat('c', id) name, if(id % 7 = 0, null, concat('s', id % 3)) segment, concat('t', id % 5) city from range(40)",
            "product": "select cast(id as int) prod_id, concat('g', id % 4) category, cast(id * 3 as decimal(10,2)) list_price from range(12)",
            "store": "select cast(id as int) store_id, if(id = 5, null, concat('r', id % 3)) region, if(id % 2 = 0, 'AT', 'DE') country from range(6)",
        }
        for name, text in dims.items():
            frame = self.spark.sql(text)
            self._save(frame, name)
        self._save(self._sales(ROWS, 0), "sales")
        self._save(
            self.spark.sql(
                "select id return_id, id * 3 sale_id, date_add(date'2026-01-01', cast(id % 9 as int)) day, cast(id % 4 as int) qty from range(40)"
            ),
            "returns",
        )

    def _save(self, frame: DataFrame, name: str) -> None:
        form = self.forms.get(name, "plain")
        writer = frame.coalesce(1).write.format("delta").options(**FORMS[form]).mode("overwrite")
        if form == "partitioned":
            writer = writer.partitionBy(PARTITIONS[name])
        writer.save(str(self.folder / name))

    def _sales(self, rows: int, day: int) -> DataFrame:
        first, self._next = self._next, self._next + rows
        pick = self.random
        made = [
            (
                number if pick.random() > 0.02 else None,
                day + pick.randrange(10) if day == 0 else day,
                pick.randrange(100),
                pick.choice([None, *range(44)]),
                pick.randrange(13),
                pick.choice([None, *range(7)]),
                pick.randrange(9),
                pick.randrange(400),
                pick.random() * 10,
                pick.choice(["new", "it's", "${x}\\", None]),
                pick.choice([[], ["a"], ["a", "b"], None]),
            )
            for number in range(first, first + rows)
        ]
        frame = self.spark.createDataFrame(
            made,
            "n bigint, d int, h int, cust_id bigint, prod_id int, store_id int, qty int, a int, price double, status string, tags array<string>",
        )
        return frame.selectExpr(
            "n sale_id",
            "date_add(date'2026-01-01', d) day",
            "timestamp_seconds(1767225600 + d * 86400L + h * 600) ts",
            "cust_id",
            "prod_id",
            "store_id",
            "qty",
            "cast(a / 4 as decimal(12,2)) amount",
            "price",
            "status",
            "tags",
        )

    # -- changes -------------------------------------------------------------------------------------------------

    def append(self, day: int = 11, rows: int = 20) -> None:
        """New rows of one day."""
        self._sales(rows, day).coalesce(1).write.format("delta").mode("append").save(
            str(self.folder / "sales")
        )

    def run(self, *statements: str) -> None:
        """SQL in which {table} stands for each table."""
        names = {name: self.path(name) for name in ("sales", "returns", "customer", "product", "store")}
        for text in statements:
            self.spark.sql(text.format(**names))

    def rewrite(self, table: str) -> None:
        """Put a table's own rows in its place."""
        rows = self.spark.read.format("delta").load(str(self.folder / table))
        same = self.spark.createDataFrame(rows.collect(), rows.schema)
        same.coalesce(1).write.format("delta").mode("overwrite").save(str(self.folder / table))

    def remake(self, table: str) -> None:
        """Make another table of the same rows in its place."""
        rows = self.spark.read.format("delta").load(str(self.folder / table))
        same = self.spark.createDataFrame(rows.collect(), rows.schema)
        shutil.rmtree(self.folder / table)
        self._save(same, table)

    def restore(self, table: str, back: int) -> None:
        """Bring a table back to what it was some versions ago."""
        version = DeltaTable(str(self.folder / table)).version()
        self.run(f"restore table {{{table}}} to version as of {max(0, version - back)}")

    def restore_after(self, *statements: str) -> None:
        """Do something to the stores, and undo it by hand."""
        rows = self.spark.read.format("delta").load(str(self.folder / "store"))
        before = self.spark.createDataFrame(rows.collect(), rows.schema)
        self.run(*statements)
        now = self.spark.read.format("delta").load(str(self.folder / "store"))
        before.exceptAll(now).coalesce(1).write.format("delta").mode("append").save(
            str(self.folder / "store")
        )

    def add_column(self, table: str) -> None:
        """Give a table a column that no view reads."""
        self._next += 1
        self.run(f"alter table {{{table}}} add columns (more_{self._next} int)")
