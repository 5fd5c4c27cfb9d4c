"""Backfills of tables with several flows, with quarantines, over Delta tables, and while the stream goes on."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.functions import udf
from tests.integration.test_a_range_is_filled_again import one_definition, order, ran, refused

from headwater.errors import UpdateInProgress
from headwater.updates.news import has_news
from headwater_spark.backfills import table_backfill
from headwater_spark.testing.local_session import forget_tables

DAY = ("--column", "at", "--from", "2026-01-02", "--to", "2026-01-03")
ITS_DAY = ("--column", "day", *DAY[2:])
FILES = {
    "lines": """
@dp.table
def lines():
    return spark.readStream.schema("id INT, at TIMESTAMP").json(LANDING)
""",
    "cloud": """
@dp.table
def cloud():
    read = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, at TIMESTAMP")
    return read.load(LANDING)
""",
}
# In seconds. Files are changed some days after 1970-01-01.
ONE_DAY = 24 * 60 * 60


RAW = """
@dp.table
def raw():
    return spark.readStream.schema("id INT, at TIMESTAMP, amount INT").json(LANDING)
"""
# Partitioned by a column that Delta generates: its queries do not return it.
SOURCE = (
    RAW
    + """
ORDERS = "id INT, at TIMESTAMP, amount INT, tax INT, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))"
@dp.table(schema=ORDERS, partition_cols=["day"])
@dp.expect_or_quarantine("positive", "amount > 0")
def orders():
    stream = spark.readStream.option("skipChangeCommits", "true").table("raw")
    return stream.where("id % 2 = 0").withColumn("tax", F.col("amount") * 2)

@dp.append_flow(target="orders")
def odd_orders():
    stream = spark.readStream.option("skipChangeCommits", "true").table("raw")
    return stream.where("id % 2 = 1").withColumn("tax", F.col("amount") * 2)
"""
)
# Each file is a version of `raw`.
RECENT = (
    RAW.replace("readStream.", 'readStream.option("maxFilesPerTrigger", 1).')
    + """
@dp.table
def recent():
    return spark.readStream.option("startingVersion", "2").option("skipChangeCommits", "true").table("raw")
"""
)
NEWEST = (
    RAW
    + """
dp.create_streaming_table("newest")
dp.create_auto_cdc_flow(target="newest", source="raw", keys=["id"], sequence_by="at")
"""
)


def orders(case: Any) -> list[tuple[Any, ...]]:
    return case.rows("orders", "id, tax", "1")  # type: ignore[no-any-return]


def land(case: Any) -> None:
    """Six orders in three files, after an update."""
    case.land([order(1, 1), order(2, 2, -5)])
    case.land([order(3, 2), order(4, 2)])
    case.land([order(5, 3), order(6, 2)])
    assert case.update().state == "COMPLETED"


def land_and_hold(case: Any) -> None:
    """One more, of the other flow, that is held, too."""
    case.land([order(11, 2, -1)])
    land(case)


def append(case: Any, number: int) -> None:
    """An order that somebody writes into `raw` by hand."""
    at = [datetime(2026, 1, 2, tzinfo=UTC)]
    row = {
        "id": pa.array([number], pa.int32()),
        "at": pa.array(at, pa.timestamp("us", "UTC")),
        "amount": pa.array([10], pa.int32()),
    }
    write_deltalake(str(case.table("raw")), pa.table(row), mode="append")


@pytest.fixture
def landed(kept: Any) -> Iterator[Any]:
    """The pipeline of orders after its first update; each flow has an order of the second day that is held."""
    with kept(SOURCE, land_and_hold) as case:
        yield case


def test_all_flows_of_a_table_are_replaced_together_and_the_stream_goes_on(landed, monkeypatch):
    """Rows that the stream writes meanwhile stay, and quarantined ones are judged anew; the range is one of a column
    that Delta generates.
    """
    case = landed
    assert orders(case) == [(1, 20), (3, 20), (4, 20), (5, 20), (6, 20)]
    case.rewrite(SOURCE.replace("* 2", "* 3").replace("amount > 0", "amount > -9"))
    update_meanwhile(case, monkeypatch, order(7, 2), order(8, 2), order(9, 3))
    code, done = ran(case, "--tables", "orders", *ITS_DAY)
    assert code == 0, done
    (table,) = done["flows"]
    assert (code, table["flow"], table["output_rows"]) == (0, "orders, odd_orders", 5)
    expected = [(1, 20), (2, -15), (3, 30), (4, 30), (5, 20), (6, 30), (7, 30), (8, 30), (9, 30), (11, -3)]
    assert orders(case) == expected
    version = case.version("orders")
    assert ran(case, "--tables", "orders", *ITS_DAY)[1]["flows"][0]["state"] == "DONE_BEFORE"
    assert case.version("orders") == version
    assert [status for (status,) in case.rows("orders_quarantine", "_status", "1")] == 2 * ["discarded"]


def test_rows_that_break_rules_are_held_once_by_each_flow(landed, monkeypatch):
    """A backfill that was killed between the quarantine's commits and the table's, and runs again, holds the range's rows as if
    it had not been killed: those of both flows, each once.
    """
    case = landed
    case.rewrite(SOURCE.replace("* 2", "* 3"))
    with monkeypatch.context() as patched:
        patched.setattr(table_backfill, "write_batch", killed)
        assert ran(case, "--tables", "orders", *ITS_DAY)[0] == 1
    code, done = ran(case, "--tables", "orders", *ITS_DAY)
    assert (code, done["flows"][0]["quarantined_rows"]) == (0, 2), done
    statuses = Counter(case.rows("orders_quarantine", "id, _status", "1"))
    assert statuses == {(2, "held"): 1, (11, "held"): 1, (2, "discarded"): 2, (11, "discarded"): 2}


def update_meanwhile(case: Any, monkeypatch: pytest.MonkeyPatch, *rows: Any) -> None:
    """An update takes rows in when the backfill has computed its range and not begun to write."""
    counted = table_backfill.slice_size

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(table_backfill, "slice_size", counted)
        case.land(list(rows))
        assert case.update().state == "COMPLETED"
        return counted(*arguments)

    monkeypatch.setattr(table_backfill, "slice_size", meanwhile)


def test_what_a_killed_backfill_took_along_is_put_back_by_whoever_comes_next(
    landed, monkeypatch, spark, tmp_path
):
    """Killed after its commit, with the stream's rows gone: the next update or the same backfill brings them, once."""
    case = landed
    update_meanwhile(case, monkeypatch, order(7, 2), order(8, 2))
    with monkeypatch.context() as patched:
        patched.setattr(table_backfill, "put_back_late_rows", killed)
        assert ran(case, "--tables", "orders", *DAY)[0] == 1
    without_late_rows = [(1, 20), (3, 20), (4, 20), (5, 20), (6, 20)]
    assert orders(case) == without_late_rows
    assert has_news(case.project()).reasons == ("a backfill of orders was not finished",)
    shutil.copytree(case.root, tmp_path / "killed")
    assert case.update(tables=("orders",)).state == "COMPLETED"
    assert orders(case) == [*without_late_rows, (7, 20), (8, 20)]
    assert has_news(case.project()).reasons == ()
    shutil.rmtree(case.root)
    shutil.copytree(tmp_path / "killed", case.root)
    forget_tables(spark)
    assert orders(case) == without_late_rows
    assert ran(case, "--tables", "orders", *DAY)[1]["flows"][0]["state"] == "DONE_BEFORE"
    assert orders(case) == [*without_late_rows, (7, 20), (8, 20)]
    assert case.update(tables=("orders",)).state == "COMPLETED"
    assert orders(case) == [*without_late_rows, (7, 20), (8, 20)]


def test_a_table_whose_reader_skips_changes_is_replaced_alone(landed, monkeypatch, spark):
    """Rows that are put back would come twice to its reader: an update meanwhile is told who runs. Where another writer takes the
    file away that is being replaced, Delta refuses, and the same rows come in a second try.
    """
    case = landed
    table, tries, begun = str(case.table("raw")), [], str(case.storage / "begun")
    counted, states = table_backfill.slice_size, []

    def meanwhile(*arguments: Any) -> Any:
        with pytest.raises(UpdateInProgress) as raised:
            case.update()
        states.append(raised.value)
        return counted(*arguments)

    @udf(returnType="boolean", useArrow=False)
    def meddle(_: int) -> bool:
        from pathlib import Path

        from deltalake import DeltaTable

        if not Path(begun).exists():
            Path(begun).touch()
            DeltaTable(table).delete("id = 4")
        return True

    def all_rows(join: Any, frames: Any) -> Any:
        tries.append(frames)
        return reduce(join, frames).coalesce(1).where(meddle("id"))

    monkeypatch.setattr(table_backfill, "slice_size", meanwhile)
    monkeypatch.setattr(table_backfill, "reduce", all_rows)
    code, done = ran(case, "--tables", "raw", *DAY)
    assert (code, len(states), len(tries)) == (0, 1, 2), done
    assert [number for (number,) in case.rows("raw", "id", "1")] == [1, 2, 3, 4, 5, 6, 11]


@pytest.mark.parametrize("table", ["recent", "newest", *FILES])
def test_a_range_of_the_source_is_added_or_merged(pipeline, table: str):
    """Versions, or files by their time, also through cloudFiles: once, and never what the stream has or will bring."""
    if table == "recent":
        check_versions(pipeline)
    elif table == "newest":
        check_sequence(pipeline)
    else:
        check_files(pipeline, table)


def check_versions(pipeline: Any) -> None:
    """What came before the stream's beginning is added, what it has read is merged, also after a compaction."""
    case = pipeline(RECENT)
    land(case)
    part = ("--tables", "recent", "--range", "version", "--from", "0", "--to")
    DeltaTable(str(case.table("raw"))).optimize.compact()
    head = case.version("raw")
    with one_definition(case):
        assert refused(case, *part, "2") == "RANGE_ALREADY_WRITTEN"
        assert refused(case, *part, str(head + 1)) == "INVALID_RANGE"
    code, done = ran(case, *part, "1")
    assert code == 0, done
    assert [id_ for (id_,) in case.rows("recent", "id", "1")] == [1, 2, 3, 4, 5, 6]
    code, done = ran(case, *part, "2", "--mode", "merge", "--keys", "id")
    assert (code, case.rows("recent", "id", "1")) == (0, [(1,), (2,), (3,), (4,), (5,), (6,)]), done
    append(case, 11)
    unread = (*part, str(head + 1), "--mode", "merge", "--keys", "id")
    assert refused(case, *unread) == "RANGE_NOT_READ_YET"


def check_sequence(pipeline: Any) -> None:
    """A target of AUTO CDC merges by its own keys and sequence: what it is fed a second time changes nothing."""
    case = pipeline(NEWEST)
    land(case)
    before = case.rows("newest", "id, amount", "1")
    assert refused(case, "--tables", "newest", *DAY, "--mode", "replace-where") == "BACKFILL_NOT_POSSIBLE"
    code, done = ran(case, "--tables", "newest", *DAY)
    assert (code, done["flows"][0]["mode"], case.rows("newest", "id, amount", "1")) == (0, "merge", before)


def check_files(pipeline: Any, table: str) -> None:
    """Merged by key where the stream has read them; unread ones are the stream's."""
    case = pipeline(FILES[table])
    for day in (1, 2, 3):
        case.land([order(day, day)])
        newest = max(case.landing.iterdir())
        os.utime(newest, (day * ONE_DAY, day * ONE_DAY))
    assert case.update().state == "COMPLETED"
    part = ("--range", "file-time", "--from", "1970-01-03", "--to", "1970-01-04")
    assert refused(case, "--tables", table, *part) == "RANGE_ALREADY_WRITTEN"
    code, done = ran(case, "--tables", table, *part, "--mode", "merge", "--keys", "id")
    assert (code, done["flows"][0]["input_rows"]) == (0, 1), done
    assert case.rows(table, "id", "1") == [(1,), (2,), (3,)]
    case.land([order(4, 4)])
    everything = (*part[:-1], "2100-01-01", "--mode", "merge", "--keys", "id")
    by_time = ("--tables", table, "--column", "at", "--from", "2026-01-01", "--to", "2026-02-01")
    with one_definition(case):
        assert refused(case, "--tables", table, *everything) == "RANGE_NOT_READ_YET"
        if table == "cloud":
            assert refused(case, *by_time) == "RANGE_NOT_READ_YET"
    if table == "lines":
        code, done = ran(case, *by_time)
        assert (code, done["flows"][0]["output_rows"]) == (0, 3), done


def test_history_is_loaded_as_a_batch_and_the_stream_begins_where_it_ended(pipeline, monkeypatch):
    """Killed after the commit, an update is refused rather than read all again, and the same command goes on."""
    case = pipeline(SOURCE)
    case.land([order(1, 1), order(2, 2, -5)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.backfills.then_stream.open_at", killed)
        assert ran(case, "--tables", "orders", "--then-stream")[0] == 1
    append(case, 3)
    assert "CHECKPOINT_LOST" in str(case.update(tables=("orders",)).error)
    code, done = ran(case, "--tables", "orders", "--then-stream")
    assert (code, done["state"]) == (0, "COMPLETED"), done
    assert [one["message"].partition(";")[0] for one in done["history"]] == [
        "0 rows of history were loaded",
        "it has run already",
    ]
    case.land([order(4, 1)])
    assert case.update().state == "COMPLETED"
    assert orders(case) == [(1, 20), (3, 20), (4, 20)]
    assert len(case.rows("orders_quarantine", "id", "1")) == 1
    assert ran(case, "--tables", "orders", "--then-stream")[0] == 0
    assert orders(case) == [(1, 20), (3, 20), (4, 20)]
    assert refused(case, "--tables", "raw", "--then-stream") == "BACKFILL_NOT_POSSIBLE"


def killed(*_: object) -> None:
    raise RuntimeError("killed")
