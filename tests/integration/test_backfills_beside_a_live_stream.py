"""Backfills of tables with several flows, with quarantines, over Delta tables, and while the stream goes on."""

from __future__ import annotations

from typing import Any

from tests.integration.test_a_range_is_filled_again import order, ran, refused

from headwater_spark.backfills import table_backfill
from headwater_spark.testing.local_session import local_session

DAY = ("--column", "at", "--from", "2026-01-02", "--to", "2026-01-03")
SOURCE = """
@dp.table
def raw():
    return spark.readStream.schema("id INT, at TIMESTAMP, amount INT").json(LANDING)

@dp.table
@dp.expect_or_quarantine("positive", "amount > 0")
def orders():
    stream = spark.readStream.option("skipChangeCommits", "true").table("raw")
    return stream.where("id % 2 = 0").withColumn("tax", F.col("amount") * 2)

@dp.append_flow(target="orders")
def odd_orders():
    stream = spark.readStream.option("skipChangeCommits", "true").table("raw")
    return stream.where("id % 2 = 1").withColumn("tax", F.col("amount") * 2)

dp.create_streaming_table("newest")
dp.create_auto_cdc_flow(target="newest", source="raw_events", keys=["id"], sequence_by="at")

@dp.temporary_view
def raw_events():
    return spark.readStream.option("skipChangeCommits", "true").table("raw")

@dp.table
def recent():
    return spark.readStream.option("startingVersion", "2").option("skipChangeCommits", "true").table("raw")
"""


def orders(case: Any) -> list[tuple[Any, ...]]:
    return case.rows("orders", "id, tax", "1")  # type: ignore[no-any-return]


def landed(pipeline: Any) -> Any:
    """Three versions of `raw` with rows: 0 or 1, 2, 3."""
    case = pipeline(SOURCE)
    case.land([order(1, 1), order(2, 2, -5)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
    case.land([order(3, 2), order(4, 2)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
    case.land([order(5, 3), order(6, 2)])
    assert case.update().state == "COMPLETED"
    return case


def test_all_flows_of_a_table_are_replaced_together_and_the_stream_goes_on(pipeline, monkeypatch):
    """Rows that the stream writes meanwhile stay, quarantined ones are judged anew, and what was unread comes once."""
    case = landed(pipeline)
    assert orders(case) == [(1, 20), (3, 20), (4, 20), (5, 20), (6, 20)]
    case.rewrite(SOURCE.replace("* 2", "* 3").replace("amount > 0", "amount > -9"))
    counted = table_backfill.slice_size

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(table_backfill, "slice_size", counted)
        case.land([order(7, 2), order(8, 2), order(9, 3)])
        assert case.update().state == "COMPLETED"
        return counted(*arguments)

    monkeypatch.setattr(table_backfill, "slice_size", meanwhile)
    code, done = ran(case, "--tables", "orders", *DAY)
    assert code == 0, done
    (table,) = done["flows"]
    assert (code, table["flow"], table["output_rows"]) == (0, "orders, odd_orders", 4)
    expected = [(1, 20), (2, -15), (3, 30), (4, 30), (5, 20), (6, 30), (7, 30), (8, 30), (9, 30)]
    assert orders(case) == expected
    version = case.version("orders")
    assert ran(case, "--tables", "orders", *DAY)[1]["flows"][0]["state"] == "DONE_BEFORE"
    assert case.version("orders") == version
    assert [status for (status,) in case.rows("orders_quarantine", "_status", "1")] == ["discarded"]
    case.land([order(10, 2)])
    assert case.update().state == "COMPLETED"
    assert orders(case) == [*expected, (10, 30)]


def test_versions_of_a_source_are_appended_or_merged(pipeline, spark):
    """What came before the stream's beginning is added; what it has read is merged, or changes nothing by sequence."""
    case = landed(pipeline)
    part = ("--range", "version", "--from")
    spark.sql(f"OPTIMIZE delta.`{case.table('raw')}`")
    head = case.version("raw")
    first = [id_ for (id_,) in case.rows("recent", "id", "1")]
    assert refused(case, "--tables", "recent", *part, "0", "--to", "2") == "RANGE_ALREADY_WRITTEN"
    assert refused(case, "--tables", "recent", *part, "0", "--to", str(head + 1)) == "INVALID_RANGE"
    code, done = ran(case, "--tables", "recent", *part, "0", "--to", "1")
    assert code == 0, done
    assert [id_ for (id_,) in case.rows("recent", "id", "1")] == [1, 2, 3, 4, 5, 6], first
    assert (
        refused(case, "--tables", "recent", *part, "0", "--to", "1", "--mode", "merge", "--keys", "nope")
        == "USAGE"
    )
    code, done = ran(case, "--tables", "recent", *part, "0", "--to", "2", "--mode", "merge", "--keys", "id")
    assert (code, case.rows("recent", "id", "1")) == (0, [(1,), (2,), (3,), (4,), (5,), (6,)]), done
    before = case.rows("newest", "id, amount", "1")
    code, done = ran(case, "--tables", "newest", *DAY)
    assert (code, done["flows"][0]["mode"], case.rows("newest", "id, amount", "1")) == (0, "merge", before)
    case.land([order(11, 2)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
    assert refused(case, "--tables", "recent", *part, "3", "--to", str(head + 1), "--mode", "merge", "--keys", "id") == "RANGE_NOT_READ_YET"  # fmt: skip


def test_history_is_loaded_as_a_batch_and_the_stream_begins_where_it_ended(pipeline, monkeypatch):
    """Killed after the commit, an update is refused rather than read all again, and the same command goes on."""
    case = pipeline(SOURCE)
    case.land([order(1, 1), order(2, 2, -5)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.backfills.then_stream.open_at", killed)
        assert ran(case, "--tables", "orders", "--then-stream")[0] == 1
    case.land([order(3, 2)])
    assert case.update(tables=("raw",)).state == "COMPLETED"
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
    assert refused(case, "--tables", "recent", "--then-stream") == "RANGE_ALREADY_WRITTEN"
    assert local_session() is not None


def killed(*_: object) -> None:
    raise RuntimeError("killed")
