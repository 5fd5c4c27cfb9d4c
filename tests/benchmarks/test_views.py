"""What a refresh by what changed takes, against the same query recomputed by hand: rows are compared before time counts.

A thousandth of the rows is new, changed on the newest day ("near"), or changed all over the table ("spread"); the session is
warm. BENCH_ROWS=10000000 judges the targets for that size; BENCH_ONE=regex chooses parts; BENCH_POLICY=incremental leaves the
cost out. The parts "choice of ..." refresh each view under three policies: how often the cost chose the faster way, and what its
choice cost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import Target, at_most, times_as_fast
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch, timed
from tests.benchmarks.peers.recomputed import recompute
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.layout import flow_checkpoint

DAYS = 400
OURS, PEER = "headwater", "recomputed by hand"
APPENDED, NEAR, SPREAD = "appended", "changed near", "changed spread"
# Each view, and how many times as fast as recomputing it is to be at ten million rows by what happens to its source.
VIEWS: dict[str, tuple[str, dict[str, float]]] = {
    "filtered": ("select id, day, cust, upper(status) st, amount * qty v from sales where qty > 1", {APPENDED: 3, NEAR: 3}),
    "joined": ("select s.id, s.day, c.segment, st.region, s.amount from sales s join customer c using (cust) join store st using (store)", {APPENDED: 3, NEAR: 3}),
    "summed by day": ("select day, store, count(*) n, sum(amount) m from sales group by day, store", {APPENDED: 3, NEAR: 3}),
    "distinct customers": ("select s.day, st.region, count(distinct s.cust) u, sum(s.amount) m from sales s join store st using (store) group by s.day, st.region", {NEAR: 10}),
    "shares of a day": ("with d as (select day, store, sum(amount) a from sales group by all), t as (select day, sum(a) ta from d group by day) select d.day, store, a, a / ta share from d join t using (day)", {NEAR: 10}),
    "running by day": ("select store, day, id, sum(amount) over (partition by store, day order by id) run from sales", {NEAR: 10}),
    "latest of a customer": ("select * from (select id, cust, day, qty, row_number() over (partition by cust order by id desc) rn from sales) where rn = 1", {NEAR: 3}),
    # Keys all over the table: recomputing is as good, and is to be what is chosen.
    "by customer": ("select cust, min(day) f, max(day) l, count(*) n from sales group by cust", {SPREAD: 0}),
}  # fmt: skip
JUDGED_ROWS = 10_000_000
# Whoever comes first after a change is slower by up to half a second: each is first as often as the other.
ROUNDS = 4
# What the cost decides between, and itself.
POLICIES = ("auto", "incremental", "full")
# Pairs of times that differ by less than this are no choice; of the others so many are to be right.
DIFFERENT, RIGHT = 1.2, 0.9
# Where the cost decides: never slower than this many times the full refresh.
NEVER_SLOWER = at_most(1.15)
SOURCE = """
VIEWS = {views!r}
POLICIES = {policies!r}

def declare(name, text, policy):
    @dp.materialized_view(name=name, refresh_policy=policy)
    def view():
        return spark.sql(text)

for name, text in VIEWS.items():
    declare(name, text, POLICIES.get(name, {policy!r}))
"""


def test_views(bench: Bench, tmp_path: Path) -> None:
    """Views follow a thousandth of new or changed rows several times as fast as they are recomputed."""
    measure(bench, tmp_path, session(whole=True))
    bench.finish()


def measure(bench: Bench, root: Path, spark: SparkSession) -> None:
    """Each view by itself, as the cost decides, then a pipeline of twenty."""
    rows, changed = bench.size("rows", 1_000_000, smoke=400), bench.size("changed", 1_000, smoke=20)
    only = os.environ.get("BENCH_ONE", "")
    parts = [
        (name, what)
        for name, (_, targets) in VIEWS.items()
        for what in targets
        if re.search(only, f"{name}, {what}")
    ]
    if bench.smoke:
        parts = [("summed by day", APPENDED), ("running by day", NEAR)]
    if parts:
        each(bench, root / "each", spark, rows, changed, parts)
    if re.search(only, "twenty") and not bench.brief:
        twenty(bench, root / "twenty", spark, rows, changed)
    if not bench.brief:
        choices(bench, root / "choices", spark, rows, changed)


def each(
    bench: Bench, root: Path, spark: SparkSession, rows: int, changed: int, parts: Sequence[tuple[str, str]]
) -> None:
    """Each view by itself, as the cost decides."""
    shop = Shop(
        spark,
        root,
        rows,
        changed,
        {_named(n): VIEWS[n][0] for n, _ in parts},
        policy="incremental" if bench.smoke else os.environ.get("BENCH_POLICY", "auto"),
    )
    for name, what in parts:
        part = f"{name}, {what}"
        change = Changes(shop, what)
        contenders = {
            OURS: partial(shop.refreshed, _named(name), change),
            PEER: partial(shop.by_hand, _named(name), change),
        }
        rounds = ROUNDS // 2 if bench.brief else ROUNDS
        bench.interleaved(part, contenders, share=0.7 / len(parts), least=rounds, most=rounds, warm=True)
        shop.check(_named(name))
        aim = VIEWS[name][1][what]
        bench.compare(part, OURS, PEER, _target(aim, rows, bench.smoke))
        bench.report(f"{part}, technique", shop.told[_named(name)])


def twenty(bench: Bench, root: Path, spark: SparkSession, rows: int, changed: int) -> None:
    """A pipeline of twenty views, of which one update refreshes all; by hand one query after the other."""
    count = 2 if bench.smoke else 20
    texts = [text for text, _ in VIEWS.values()]
    views = {f"v{n}": f"select * from ({texts[n % len(texts)]}) where 1 = 1" for n in range(count)}
    shop = Shop(spark, root, rows, changed, views, policy="auto")
    change = Changes(shop, NEAR)
    part = f"{count} views, {NEAR}"
    bench.interleaved(
        part, {OURS: partial(shop.updated, change), PEER: partial(shop.all_by_hand, change)}, share=0.3, least=ROUNDS, most=ROUNDS, warm=True
    )  # fmt: skip
    for name in views:
        shop.check(name)
    bench.compare(part, OURS, PEER, None if bench.smoke else times_as_fast(3))


def choices(bench: Bench, root: Path, spark: SparkSession, rows: int, changed: int) -> None:
    """Each view and each change under three policies: whether the cost chose the faster way, and what the choice cost."""
    only = os.environ.get("BENCH_ONE", "")
    whats = (APPENDED, NEAR, SPREAD)
    parts = [(n, w) for w in whats for n in VIEWS if re.search(only, f"choice of {n}, {w}")]
    parts = [("summed by day", NEAR)] if bench.smoke else parts
    if not parts:
        return
    names = {f"{_named(n)}_{policy}": (VIEWS[n][0], policy) for n, _ in parts for policy in POLICIES}
    texts, policies = {n: text for n, (text, _) in names.items()}, {n: p for n, (_, p) in names.items()}
    shop = Shop(spark, root, rows, changed, texts, policies=policies)
    made = []
    for name, what in parts:
        part, change = f"choice of {name}, {what}", Changes(shop, what)
        contenders = {p: partial(shop.refreshed, f"{_named(name)}_{p}", change) for p in POLICIES}
        bench.interleaved(part, contenders, share=0.2 / len(parts), least=3, most=3, warm=True)
        made.append(shop.choice(name, what, {p: best(bench.parts[part][p]) for p in POLICIES}))
        bench.report(part, made[-1])
    bench.report("choices", judged(made))


def best(runs: Sequence[Run]) -> float:
    """The seconds of the fastest run: what others do on the machine only adds to it."""
    return min(run.wall for run in runs)


def judged(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often the faster way was chosen where the two differ, and how much longer the choices took than the best ones."""
    differ = [
        one
        for one in made
        if max(one["incremental"], one["full"]) > DIFFERENT * min(one["incremental"], one["full"])
    ]
    right = [one for one in differ if one["chosen"] == (one["incremental"] < one["full"])]
    ideal = sum(min(one["incremental"], one["full"]) for one in made)
    return {
        "pairs": len(made),
        "that differ": len(differ),
        "right": len(right),
        "regret": round(sum(one["auto"] for one in made) / ideal - 1, 3),
        "worst of full": round(max(one["auto"] / one["full"] for one in made), 2),
        "wrong": [f"{one['view']}, {one['what']}" for one in differ if one not in right],
    }


def _target(times: float, rows: int, smoke: bool) -> Target | None:
    if smoke:
        return None
    if not times:
        return NEVER_SLOWER
    return times_as_fast(times) if rows >= JUDGED_ROWS else None


def _named(name: str) -> str:
    return name.replace(" ", "_")


class Shop:
    """The sources, the views, and the same queries by hand."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        rows: int,
        changed: int,
        views: Mapping[str, str],
        *,
        policy: str = "auto",
        policies: Mapping[str, str] | None = None,
    ) -> None:
        self.spark, self.rows, self.changed, self.views = spark, rows, changed, views
        source = SOURCE.format(views=dict(views), policy=policy, policies=dict(policies or {}))
        self.case = PipelineCase(root, source)
        self.told: dict[str, str] = {}
        self.next = 0
        self.add(rows, f"id div {max(1, rows // DAYS)}", files=8)
        spark.range(100_000).selectExpr("id cust", "concat('s', id % 7) segment").write.format("delta").save(
            str(self.case.table("customer"))
        )
        spark.range(50).selectExpr("cast(id as int) store", "concat('r', id % 5) region").write.format(
            "delta"
        ).save(str(self.case.table("store")))
        report = self.case.update()
        assert report.state == "COMPLETED", report.error

    def add(self, rows: int, days: str, files: int) -> None:
        """New sales."""
        first, self.next = self.next, self.next + rows
        made = self.spark.range(first, first + rows, 1, files).selectExpr(
            "id", f"date_add(date'2025-01-01', cast({days} as int)) day", "cast(id * 7919 % 100000 as bigint) cust",
            "cast(id % 50 as int) store", "cast(id % 5 as int) qty", "cast(id % 1000 as decimal(12,2)) amount", "concat('s', id % 4) status",
        )  # fmt: skip
        made.write.format("delta").mode("append").save(str(self.case.table("sales")))

    def refreshed(self, name: str, change: Changes, number: int) -> Run:
        """A refresh of one view: the seconds of its flow, the CPU time of the whole update."""
        change.make(number)
        with stopwatch() as watch:
            report = self.case.update(tables=(name,))
        assert report.state == "COMPLETED", report.error
        (event,) = self.case.events(update_id=report.result.update_id, event_type="planning_information")
        told = event["details"]["planning_information"]["technique_information"]
        chosen = next(one["maintenance_type"] for one in told if one.get("is_chosen"))
        self.told[name] = chosen.removeprefix("MAINTENANCE_TYPE_")
        return Run(report[name].seconds, watch.run.cpu)

    def choice(self, name: str, what: str, seconds: Mapping[str, float]) -> dict[str, Any]:
        """What the cost knew of a view, what it chose at last, and what each policy took, in seconds."""
        told = self.told[f"{_named(name)}_auto"]
        known = self.known(f"{_named(name)}_auto")
        reached = self.known(f"{_named(name)}_incremental").get("reach", {})
        return {
            "view": name, "what": what, "technique": self.told[f"{_named(name)}_incremental"], "chosen": told != "COMPLETE_RECOMPUTE",
            **{policy: round(one, 2) for policy, one in seconds.items()},
            "full_runs": known.get("full_runs"), "runs": known.get("runs"), "reach": known.get("reach"), "reached": reached,
        }  # fmt: skip

    def known(self, name: str) -> Mapping[str, Any]:
        """What the state of a view's flow says of its refreshes."""
        state = flow_checkpoint(self.case.project().state_folder, name, name).read_state()
        return state.refresh if state is not None else {}

    def by_hand(self, name: str, change: Changes, number: int) -> Run:
        """The query recomputed into a table of its own."""
        change.make(number)
        for table in ("sales", "customer", "store"):
            self.spark.read.format("delta").load(str(self.case.table(table))).createOrReplaceTempView(table)
        return timed(lambda: recompute(self.spark, self.views[name], self.case.table(f"hand_{name}")))

    def updated(self, change: Changes, number: int) -> Run:
        """One update of all views."""
        change.make(number)
        with stopwatch() as watch:
            report = self.case.update()
        assert report.state == "COMPLETED", report.error
        return watch.run

    def all_by_hand(self, change: Changes, number: int) -> Run:
        """All queries recomputed, one after the other."""
        change.make(number)
        runs = [self.by_hand(name, change, number) for name in self.views]
        return Run(sum(run.wall for run in runs), sum(run.cpu for run in runs))

    def check(self, name: str) -> None:
        """The same rows on both sides, each as often."""
        one, other = (
            self.spark.read.format("delta").load(str(self.case.table(n))) for n in (name, f"hand_{name}")
        )
        assert one.exceptAll(other).isEmpty(), name
        assert other.exceptAll(one).isEmpty(), name


class Changes:
    """What happens to the sales before a round: whoever is first in it makes it, and all see the same rows."""

    def __init__(self, shop: Shop, what: str) -> None:
        self._shop, self._what, self._made = shop, what, -2

    def make(self, number: int) -> None:
        """Make the change of a round, once."""
        if number == self._made:
            return
        self._made = number
        self._change(number)
        # Whoever reads a version first makes Delta's snapshot of it; that is nobody's work here.
        self._shop.spark.read.format("delta").load(str(self._shop.case.table("sales"))).where(
            "id < 0"
        ).count()

    def _change(self, number: int) -> None:
        shop = self._shop
        if self._what == APPENDED:
            shop.add(shop.changed, str(DAYS), files=1)
            return
        newest = f"id >= {shop.rows - shop.changed} and id < {shop.rows}"
        spread = f"id % {max(1, shop.rows // shop.changed)} = {7 + number}"
        where = newest if self._what == NEAR else spread
        shop.spark.sql(
            f"update delta.`{shop.case.table('sales')}` set amount = amount + 1, qty = qty + 1 where {where}"
        )
