"""For damage that no start makes good: the remedy that its message names is carried out, and gives what it says."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.prepared_pipeline import SOURCE, Prepared
from tests.repaired_pipeline import repair, treated

__all__ = ["treated"]


def append(table: Path, number: int) -> None:
    """One more version with a row that nothing has read."""
    rows = {"id": pa.array([number], pa.int32()), "team": ["z"], "points": pa.array([1], pa.int32())}
    write_deltalake(str(table), pa.table(rows), mode="append")


def log_cut(done: Prepared) -> Counter[Any]:
    """Retention took a commit that was not read: left out from a version on, or all read anew."""
    table = done.case.table("bronze")
    append(table, 98)
    append(table, 99)
    DeltaTable(str(table)).create_checkpoint()
    head = DeltaTable(str(table)).version()
    for version in range(head):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    arguments = ("--action=new-epoch", f"--from-version={head}")
    repair(done, "silver", *arguments, condition="SOURCE_LOG_CUT")
    repair(done, "running", "--action=full-refresh", condition="SOURCE_LOG_CUT")
    return Counter([(99, 2)])


def recreated(done: Prepared) -> Counter[Any]:
    """Another table has the source's name: read from its beginning, beside the rows that are there."""
    shutil.rmtree(done.case.table("bronze"))
    append(done.case.table("bronze"), 99)
    arguments = ("--action=new-epoch", "--from-start")
    repair(done, "bronze", *arguments, condition="TABLE_REPLACED", doubled="up to 1 rows")
    repair(done, "silver", *arguments, condition="SOURCE_REPLACED", doubled="up to 12 rows")
    repair(done, "running", *arguments, condition="SOURCE_REPLACED")
    return Counter(done.case.rows("silver"))


def rows_deleted(done: Prepared) -> Counter[Any]:
    """Rows of the source were deleted: such commits are left out, or all is read anew."""
    deleted = done.case.rows("bronze", "id, points")[0]
    DeltaTable(str(done.case.table("bronze"))).delete(f"id = {deleted[0]}")
    assert done.conditions("silver") == [("SOURCE_ROWS_CHANGED", False)]
    reads = 'dp.read_stream("bronze").select("id"'
    done.case.rewrite(
        SOURCE.replace(
            reads, 'spark.readStream.option("skipChangeCommits", "true").table("bronze").select("id"'
        )
    )
    assert done.conditions("running") == [("SOURCE_ROWS_CHANGED", False)]
    return Counter([(deleted[0], deleted[1] * 2)])


def without_changes_and_vacuumed(done: Prepared) -> Counter[Any]:
    """A stream goes over to the change feed where it stands; later a commit recorded no changes, and all is read anew. Files of that
    commit, which another stream had not read, were compacted and vacuumed: all is read anew there, too.
    """
    table = done.case.table("bronze")
    feed = """spark.readStream.option("readChangeFeed", "true").table("bronze").where("_change_type = 'insert'")"""
    text = SOURCE.replace('dp.read_stream("bronze").select("id"', f'{feed}.select("id"')
    declared = '@dp.table(table_properties={"delta.enableChangeDataFeed": "true"})\ndef bronze'
    done.case.rewrite(text.replace("@dp.table\ndef bronze", declared))
    done.land()
    code, answer = done.case.run()
    errors = {flow["flow"]: str(flow["error"] or "") for flow in answer["flows"]}
    assert (code, "CHANGE_FEED_MISSING" in errors["silver"], errors["bronze"]) == (3, True, "")
    position = re.search(r"--from-version (\d+)", errors["silver"])
    assert position is not None
    arguments = ("--action=new-epoch", f"--from-version={position[1]}")
    repair(done, "silver", *arguments, condition="CHANGE_FEED_MISSING")
    report = done.case.update(tables=("silver",))
    assert (report.state, report.error) == ("COMPLETED", None)
    done.tables_equal_the_batch()
    DeltaTable(str(table)).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    append(table, 99)
    assert done.conditions("silver") == [("CHANGE_FEED_MISSING", False)]
    DeltaTable(str(table)).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    repair(done, "silver", "--action=full-refresh", condition="CHANGE_FEED_MISSING")
    DeltaTable(str(table)).optimize.compact()
    DeltaTable(str(table)).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert done.conditions("running") == [("SOURCE_FILES_GONE", False)]
    return Counter()


def another_query(done: Prepared) -> Counter[Any]:
    """Other keys of a state, one source more, and two in another order are refused; filled anew, or with the order put back, tables
    are what the query says now.
    """
    union = '''more = spark.readStream.schema("id INT, team STRING, points INT").json(LANDING)
    return dp.read_stream("bronze").union(more).select("id"'''
    keys = SOURCE.replace('groupBy("team")', 'groupBy(F.lower("team").alias("team"))')
    done.case.rewrite(keys.replace('return dp.read_stream("bronze").select("id"', union))
    code, answer = done.case.run("--tables=silver,running")
    errors = {flow["flow"]: str(flow["error"] or "") for flow in answer["flows"]}
    assert code == 3
    assert "PLAN_CHANGED" in errors["running"]
    assert "SOURCES_CHANGED" in errors["silver"]
    code, answer = done.case.run("--full-refresh=silver,running")
    assert (code, answer["state"]) == (0, "COMPLETED")
    query = (done.case.folder / "transformations" / "main.py").read_text()
    swapped = query.replace('dp.read_stream("bronze").union(more)', 'more.union(dp.read_stream("bronze"))')
    assert swapped != query
    done.case.write("transformations/main.py", swapped)
    code, answer = done.case.run("--tables=silver")
    errors = {flow["flow"]: str(flow["error"] or "") for flow in answer["flows"]}
    assert code == 3
    assert "'silver' reads its sources in another order than before" in errors["silver"]
    done.case.write("transformations/main.py", query)
    return Counter()


# Where the last update is the remedy of the flow with state, too.
REFRESHED = (rows_deleted, without_changes_and_vacuumed)


@pytest.mark.parametrize(
    "damage", [log_cut, recreated, rows_deleted, without_changes_and_vacuumed, another_query]
)
def test_sources_that_changed(treated: Prepared, damage: Callable[[Prepared], Counter[Any]]):
    """After the remedy updates go on, and the tables hold what is in their source, with what the remedy left over."""
    beside = damage(treated)
    treated.land()
    case = treated.case
    refresh = {"full_refresh": ("running",), "tables": ("bronze", "silver")} if damage in REFRESHED else {}
    report = case.update(**refresh)
    assert (report.state, report.error) == ("COMPLETED", None)
    now = Counter(case.rows("bronze", "id, points * 2"))
    if damage is log_cut:
        now -= Counter([(98, 2), (99, 2)])
    if damage is another_query:  # each row comes from the table, and from its file
        beside = now
    assert Counter(case.rows("silver")) == now + beside
    assert dict(case.rows("running")) == Counter(row[0] for row in case.rows("bronze", "team, id"))
