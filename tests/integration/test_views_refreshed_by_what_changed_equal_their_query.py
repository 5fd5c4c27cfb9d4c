"""Materialized views that are refreshed by what changed have, after each update, what their query gives, and took the technique
that is expected: nothing passes by recomputing.
"""

from __future__ import annotations

import os
import random
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.integration.composed_queries import TABLES as COLUMNS
from tests.integration.composed_queries import composed
from tests.integration.star_changes import CHANGES
from tests.integration.star_schema import FRAMES, FULL, VIEWS, Star
from tests.pipeline_case import PipelineCase
from tests.rows_in_memory import rows_in_memory
from tests.seeds import SEED, SOAK

from headwater_spark.execution import flow_writer, view_refresh
from headwater_spark.plans.session_settings import session_settings
from headwater_spark.views.eligibility import never_incremental
from headwater_spark.views.plan_surgery import ViewPlan

SOURCE = """
VIEWS = {views!r}
FRAMES = {frames!r}

def declare(name, text, policy):
    @dp.materialized_view(name=name, refresh_policy=policy, table_properties={{"delta.enableChangeDataFeed": "true"}})
    def view():
        return eval(FRAMES[name]) if name in FRAMES else spark.sql(text)

for name, (text, policy) in VIEWS.items():
    declare(name, text, policy)
"""
# One view of each technique and kind of plan; the soak has all of them.
CHOSEN = {
    name: view
    for name, view in VIEWS.items()
    if SOAK
    or name
    in ("united", "star", "anti_joined", "by_day", "distinct_customers", "latest", "shares", "over_a_view")
}  # fmt: skip
# Queries put together at random that the soak has beside them, as views, where they can be followed at all.
COMPOSED = 10
# The oracle's queries read some hundred rows in memory, and need no exchange between many tasks.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
TABLES = ("sales", "returns", "customer", "product", "store")
GROWN, CHANGED, SAME, ANEW, RESTORED = "grown", "changed", "same", "anew", "restored"

# What is done to the sources, and what that is to each of them.
STEPS: list[tuple[str, Any, dict[str, str]]] = [
    ("rows of one day", lambda star: star.append(), {"sales": GROWN}),
    (
        "rows change, move to other keys, and go; files are moved, and rows of them change; so do rows that are joined, with a feed",
        lambda star: star.run(
            "update {sales} set qty = if(sale_id % 97 = 3, qty + 1, qty), status = if(sale_id % 97 = 3, null, status), "
            "cust_id = if(sale_id % 89 = 5, 41, cust_id), day = if(sale_id % 89 = 5, date_add(day, 1), day) where sale_id % 97 = 3 or sale_id % 89 = 5",
            "delete from {sales} where sale_id % 83 = 7 or store_id = 4",
            "optimize {sales}",
            "update {sales} set qty = 9 where sale_id in (11, 12, 77)",
            "update {customer} set city = 'x', segment = 's9' where cust_id % 11 = 3",
            "delete from {customer} where cust_id = 12",
            "insert into {customer} values (42, 'c42', null, 't1')",
        ),
        {"sales": CHANGED, "customer": CHANGED},
    ),
    ("restored, and made anew", lambda star: (
        star.run("restore table {sales} to version as of 1"),
        star.remake("product"),
    ), {"sales": RESTORED, "product": ANEW}),
    (
        "one dimension changes and gets deletion vectors, one has equal rows in their place, back and forth with them; rows come to files that are moved",
        lambda star: (
            star.run(
                "alter table {store} set tblproperties ('delta.enableDeletionVectors' = 'true')",
                "update {store} set region = 'new' where store_id = 3",
                "insert into {returns} select 900 + id, 11 + id, date'2026-01-03', 1 from range(4)",
                "optimize {returns}",
                "alter table {customer} set tblproperties ('delta.enableDeletionVectors' = 'true')",
                "update {customer} set segment = concat(segment, '?') where cust_id < 20",
                "update {customer} set segment = substr(segment, 1, 2) where cust_id < 20",
            ),
            star.rewrite("customer"),
        ),
        {"store": CHANGED, "customer": SAME, "returns": GROWN},
    ),
]  # fmt: skip


class Oracle:
    """A pipeline of views, and what each of them should have."""

    def __init__(
        self, make: Any, spark: Any, seed: int, policy: str = "incremental", *, mixed: bool = False
    ) -> None:
        self.views = {name: view.text for name, view in CHOSEN.items()}
        declared = {n: (v.text, "auto" if v.changed == FULL else policy) for n, v in CHOSEN.items()}
        if mixed:
            made = {f"composed_{n}": text for n, text in enumerate(_followed(spark, seed))}
            self.views |= made
            declared |= {name: (text, policy) for name, text in made.items()}
        frames = {
            name: text for place, (name, text) in enumerate(FRAMES.items()) if mixed and (place + seed) % 2
        }
        self.case: PipelineCase = make(SOURCE.format(views=declared, frames=frames))
        self.spark = spark
        self.star = Star(spark, self.case.warehouse / "shop", seed, mixed=mixed)
        self._seen: dict[str, tuple[int, Counter[str]]] = {}
        self._states: dict[str, tuple[str, int]] = {}
        self._known: dict[str, tuple[dict[str, tuple[str, int]], Counter[str]]] = {}
        self.star.make()

    def update(self) -> dict[str, tuple[str, str]]:
        """Run an update; which technique each view took, by the event log, and the event's message."""
        report = self.case.update()
        assert report.state == "COMPLETED", report.error
        chosen = {}
        for event in self.case.events(update_id=report.result.update_id, event_type="planning_information"):
            told = event["details"]["planning_information"]["technique_information"]
            name = next(one["maintenance_type"] for one in told if one.get("is_chosen"))
            chosen[event["origin"]["dataset_name"]] = (
                name.removeprefix("MAINTENANCE_TYPE_"),
                event["message"],
            )
        return chosen

    def wrong(self) -> dict[str, Any]:
        """The views that don't have what their query gives, with rows that are too many and rows that are missing."""
        self._load_sources()
        found = {}
        with session_settings(self.spark, QUICK):
            for name in self.views:
                wanted, there = self._wanted(name), _bag(_table(self.case.table(name)))
                if there != wanted:
                    more, fewer = list((there - wanted).elements()), list((wanted - there).elements())
                    found[name] = {"more": more[:3], "fewer": fewer[:3]}
        return found

    def _load_sources(self) -> None:
        """Show the queries the rows of each source, as they are now, in memory."""
        for name in TABLES:
            table = DeltaTable(str(self.star.folder / name))
            state = (table.metadata().id, table.version())
            if self._states.get(name) != state:
                rows_in_memory(self.spark, self.star.folder / name).createOrReplaceTempView(name)
                self._states[name] = state

    def _wanted(self, name: str) -> Counter[str]:
        """What a view's query gives; computed once for each state of what it reads, but for what depends on the day."""
        text = self.views[name]
        frame = self.spark.sql(text)
        if name == "distinct_customers":
            frame.createOrReplaceTempView(name)
        reads = set(
            re.findall(r"\w+", text + self.views.get("distinct_customers", "") * (name == "over_a_view"))
        )
        states = {table: state for table, state in self._states.items() if table in reads}
        if name == "today" or name not in self._known or self._known[name][0] != states:
            self._known[name] = states, _bag(frame.toArrow())
        return self._known[name][1]

    def wrongly_fed(self) -> list[str]:
        """The views whose change feed since the last look, applied to the rows of then, does not give the rows of now."""
        wrong = []
        for name in self.views:
            table = self.case.table(name)
            rows, version = (
                _bag(self.spark.read.format("delta").load(str(table)).toArrow()),
                self.case.version(name),
            )
            before, old = self._seen.get(name, (version, rows))
            if before < version:
                feed = (
                    self.spark.read.format("delta")
                    .option("readChangeFeed", "true")
                    .option("startingVersion", before + 1)
                )
                told = feed.option("endingVersion", version).load(str(table))
                kinds = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
                replayed = Counter(old)
                for row in told.drop("_commit_version", "_commit_timestamp").toArrow().to_pylist():
                    kind = row.pop("_change_type")
                    replayed[repr(tuple(row.values()))] += kinds[kind]
                if any(count < 0 for count in replayed.values()) or +replayed != rows:
                    wrong.append(name)
            self._seen[name] = version, rows
        return wrong


class Killed(BaseException):
    """What a SIGKILL leaves: nothing after this point happened."""


def kill_one(patch: pytest.MonkeyPatch, number: int, *, after: bool) -> None:
    """End the process before or after the commit of the n-th refresh that writes."""
    write, calls = flow_writer.write_batch, iter(range(1, 1000))

    def killing(*arguments: Any) -> None:
        own = next(calls) == number
        if own and not after:
            raise Killed
        write(*arguments)
        if own:
            raise Killed

    patch.setattr(flow_writer, "write_batch", killing)
    patch.setattr(view_refresh, "write_batch", killing)


def _followed(spark: Any, seed: int) -> list[str]:
    """Composed queries that can be refreshed by what changed."""
    for name, columns in COLUMNS.items():
        types = {"n": "bigint", "d": "date", "a": "decimal(12,2)", "s": "string", "t": "timestamp"}
        schema = ", ".join(f"{column} {types[kind]}" for column, kind, _ in columns)
        # As a table with files: what can be followed is followed to a Delta table.
        folder = Path(tempfile.mkdtemp()) / name
        spark.createDataFrame([], schema).write.format("delta").save(str(folder))
        spark.read.format("delta").load(str(folder)).createOrReplaceTempView(name)
    found: list[str] = []
    for number in range(seed * 1000, seed * 1000 + 100):
        text = composed(number)
        frame = spark.sql(text)
        plan = ViewPlan(frame)
        types_of = [field.dataType.simpleString() for field in frame.schema.fields]
        if not never_incremental(plan.root, types_of, plan.undetermined()):
            found.append(text)
        if len(found) == COMPOSED:
            break
    return found


def _shown(event: Any) -> str:
    """A technique, and of a full refresh why."""
    told = event["details"]["planning_information"]["technique_information"]
    name = next(one["maintenance_type"] for one in told if one.get("is_chosen"))
    issues = [issue["issue_type"] for one in told for issue in one.get("incrementalization_issues", ())]
    return " ".join([name.removeprefix("MAINTENANCE_TYPE_"), *issues])


def _table(folder: Any) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(str(folder))).execute("select * from t")
    return pa.table(query.read_all())


def _bag(table: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in table.to_pylist())


def _expected(name: str, kinds: dict[str, str]) -> set[str]:
    """The techniques that a view may take where its sources had these changes."""
    view = VIEWS[name]
    reads = set(re.findall(r"\w+", view.text))
    if name == "today":
        return {FULL}
    if name == "over_a_view":
        # Parts of the other view that are new are appended to it.
        return (
            {"GENERIC_AGGREGATE", "GROUP_AGGREGATE", "NO_OP"}
            if {kinds.get("sales"), kinds.get("store")} - {None, SAME}
            else {"NO_OP"}
        )
    moved = {table: kind for table, kind in kinds.items() if table in reads}
    if not moved:
        return {"NO_OP"}
    if view.changed == FULL or ANEW in moved.values():
        return {FULL}
    if set(moved.values()) == {SAME}:
        return {"NO_OP"}
    if moved == {"sales": GROWN}:
        return {view.grown}
    if (
        RESTORED in moved.values()
    ):  # RESTORE writes the table's protocol down, which is another one where its features were
        return {view.changed, FULL, "NO_OP"}
    # A change may come to nothing in the columns that the view uses.
    if moved == {"returns": GROWN} and name == "united":
        return {"APPEND_ONLY"}
    return {view.changed, "NO_OP"}


def test_views_equal_their_query(pipeline: Any, spark: Any) -> None:
    """Four steps over all views: rows are right after each, techniques as expected; what has not changed is left alone."""
    oracle = Oracle(pipeline, spark, SEED)
    assert {technique for technique, _ in oracle.update().values()} == {FULL}
    assert oracle.wrong() == {}
    surprises = {}
    for step, change, kinds in STEPS:
        change(oracle.star)
        taken = oracle.update()
        for name, (technique, message) in taken.items():
            if technique not in _expected(name, kinds):
                surprises[step, name] = message
        assert oracle.wrong() == {}, (step, taken)
    assert surprises == {}


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not SOAK, reason="a loop of make soak, which gives the seed")
def test_random_changes(pipeline: Any, spark: Any) -> None:
    """One to three changes at random before each update, some of which are killed: rows and change feeds of all views are right."""
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    oracle = Oracle(pipeline, spark, SEED, mixed=True)
    pick = random.Random(SEED)
    oracle.update()
    kills = refused = 0
    for number in range(int(os.environ.get("HEADWATER_VIEW_STEPS") or 30)):
        chosen = [pick.choice(list(CHANGES)) for _ in range(pick.randint(1, 3))]
        for name in chosen:
            try:
                CHANGES[name](oracle.star)
            except Exception as error:  # a restore to a version whose files are gone, say
                refused += 1
                print(f"step {number}: {name} was not possible: {str(error)[:120]}")
        if pick.random() < 0.4:
            with pytest.MonkeyPatch.context() as patch:
                kill_one(patch, pick.randint(1, 12), after=pick.random() < 0.5)
                try:
                    oracle.case.update()
                except Killed:
                    kills += 1
        taken = oracle.update()
        assert oracle.wrong() == {}, (SEED, number, chosen, taken)
        assert oracle.wrongly_fed() == [], (SEED, number, chosen, taken)
    counted: dict[str, Counter[str]] = {name: Counter() for name in oracle.views}
    for event in oracle.case.events(event_type="planning_information"):
        counted[event["origin"]["dataset_name"]][_shown(event)] += 1
    for name, techniques in counted.items():
        print(f"{name:20} {dict(techniques)}")
    print(f"seed {SEED}: {oracle.star.forms}, {kills} updates killed, {refused} changes refused")
