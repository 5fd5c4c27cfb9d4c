"""Backfills, replays, readers of changes, maintenance, drops and renames leave what an oracle says where all lies on S3."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.killed_before_recording import killed_before_recording
from tests.object_stores import store_server
from tests.pipeline_case import SMALL_QUERIES, SPARK, spec_of
from tests.store_driver import StoreDriver
from tests.stored_case import StoredCase

import replay_quarantine
import run_backfill
from headwater.change_feed.change_range import ChangeRange
from headwater.change_feed.consumer import ChangeConsumer
from headwater.change_feed.reading import arrow_table
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.commands.command_line import main
from headwater.moves.stored_folders import contents
from headwater.storage.walking import files_below
from headwater.updates.news import has_news
from headwater_spark.backfills import table_backfill

SOURCE = """
@dp.table
def raw():
    return spark.readStream.schema("id INT, at TIMESTAMP, amount INT").json(LANDING)

@dp.table(table_properties={"delta.enableChangeDataFeed": "true"})
@dp.expect_or_quarantine("positive", "amount > 0")
def orders():
    return dp.read_stream("raw").withColumn("tax", F.col("amount") * 2)

@dp.materialized_view
def by_day():
    return dp.read("orders").groupBy(F.to_date("at").alias("day")).agg(F.sum("tax").alias("tax"))

@dp.table
def copied():
    return dp.read_stream("raw").select("id")
"""
MENDED = SOURCE.replace("* 2", "* 3")
TOLERANT = MENDED.replace("amount > 0", "amount > -9")
SPEC = spec_of({**SPARK, **SMALL_QUERIES})
LIVE = ("raw", "orders")
SECOND = ("--column", "at", "--from", "2026-01-02", "--to", "2026-01-03")


def test_all_verbs_on_s3(tmp_path: Path, store_driver: StoreDriver):
    """One pipeline: a killed backfill is put right, rows are replayed, history is loaded, batches are counted, files go, a table goes, and
    one gets another name.
    """
    with store_server(light=True) as server:
        server.make_bucket("lake")
        store_driver.run(drive, str(tmp_path), server=server.environment())
    print(store_driver.said)


class Orders(StoredCase):
    """The pipeline, and what its tables must hold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.oracle: dict[int, tuple[str, int]] = {}
        self.feed: Counter[tuple[int, int]] = Counter()

    def lands(self, factor: int, *orders: tuple[int, int, int]) -> None:
        """Land orders (id, day, amount), which the stream takes in with a tax of ``factor`` times the amount."""
        self.land(
            [{"id": i, "at": f"2026-01-0{day}T12:00:00Z", "amount": amount} for i, day, amount in orders]
        )
        self.oracle |= {i: (f"2026-01-0{day}", factor * amount) for i, day, amount in orders if amount > 0}

    def updated(self, *tables: str) -> None:
        report = self.update(tables=tables)
        assert report.state == "COMPLETED", report.error

    def check_orders(self) -> None:
        """The table holds what the oracle says."""
        assert self.rows("orders", "id, tax") == sorted((i, tax) for i, (_, tax) in self.oracle.items())

    def check(self) -> None:
        """As ``check_orders``, and the view."""
        self.check_orders()
        days = Counter[str]()
        for day, tax in self.oracle.values():
            days[day] += tax
        assert self.rows("by_day", "cast(day as varchar), tax") == sorted(days.items())

    def read_changes(self) -> list[ChangeRange]:
        """What a reader with a position of its own is given, added up into ``feed``."""
        folder = self.storage / "change_feeds" / "readers" / "named"
        reader = ChangeConsumer(folder / "sums.shop.orders.json", "shop.orders", self.table("orders"))
        ranges = []
        with reader.alone():
            while (changes := reader.next_range()) is not None:
                for row in arrow_table(self.table("orders"), changes).to_pylist():
                    away = row["_change_type"] in ("delete", "update_preimage")
                    self.feed[row["id"], row["tax"]] += -1 if away else 1
                reader.done(changes)
                ranges.append(changes)
        return ranges

    def maintained(self, *arguments: str) -> dict[str, Any]:
        code, answer = self.call(main, "--yes", "--retention", "0 hours", *arguments, verb=["maintenance"])
        assert code == 0, answer
        return {(step["kind"], step["subject"]): step for step in answer["steps"]}


def drive(root: str) -> None:
    """All of it, in the driver."""
    started = time.monotonic()
    case = Orders(Path(root), SOURCE, spec=SPEC)
    case.lands(2, (1, 1, 10), (2, 2, 20), (3, 3, -5))
    case.lands(2, (4, 2, 40), (5, 3, 50))
    case.updated(*LIVE)
    case.check_orders()
    assert [changes.snapshot for changes in case.read_changes()] == [True]
    for step in (put_right, replayed, history, counted_again, kept, dropped, renamed):
        print(f"{time.monotonic() - started:.0f} s: {step.__name__}", flush=True)
        step(case)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


def put_right(case: Orders) -> None:
    """A backfill is killed after its commit, which took rows of the stream along; vacuum leaves them, and the next update brings them."""
    case.rewrite(MENDED)
    with pytest.MonkeyPatch.context() as patched:
        counted = table_backfill.slice_size

        def meanwhile(*arguments: Any) -> Any:
            patched.setattr(table_backfill, "slice_size", counted)
            case.lands(3, (6, 2, 60), (7, 1, 70))
            case.updated(*LIVE)
            return counted(*arguments)

        def killed(*_: Any) -> None:
            raise RuntimeError("killed")

        patched.setattr(table_backfill, "slice_size", meanwhile)
        patched.setattr(table_backfill, "put_back_late_rows", killed)
        assert case.call(run_backfill.main, "--tables", "orders", *SECOND)[0] == 1
    for number in (2, 4):
        day, tax = case.oracle[number]
        case.oracle[number] = (day, tax // 2 * 3)
    assert [number for number, _ in case.rows("orders", "id, tax")] == [1, 2, 4, 5, 7]
    case.maintained("--only", "vacuum", "--tables", "orders")
    assert has_news(case.project()).reasons == ("a backfill of orders was not finished",)
    case.updated(*LIVE)
    case.check_orders()
    assert not list(pending_replacements(case.project().state_folder))


def replayed(case: Orders) -> None:
    """The rule was mended: the row that it kept out comes into the table, once."""
    case.rewrite(TOLERANT)
    code, answer = case.call(replay_quarantine.main, "orders")
    assert (code, answer["flows"][0]["replayed"]) == (0, 1), answer
    case.oracle[3] = ("2026-01-03", -15)
    case.check_orders()


def history(case: Orders) -> None:
    """A table that never ran gets all history as one batch, and its stream goes on from there."""
    code, answer = case.call(run_backfill.main, "--tables", "copied", "--then-stream")
    assert code == 0, answer
    assert [one["rows"] for one in answer["history"]] == [7]
    assert case.rows("copied", "id", "1") == [(number,) for number in range(1, 8)]


def counted_again(case: Orders) -> None:
    """A driver died before it recorded the batches that it had written: the next one counts them again."""
    case.lands(3, (8, 1, 80), (9, 2, 90))
    killed_before_recording(case, ["orders", "copied"])
    case.lands(3, (10, 3, 100))
    case.updated()
    case.check()
    assert case.rows("copied", "id", "1") == [(number,) for number in range(1, 11)]
    for flow in ("orders", "copied"):
        records = [e["details"]["flow_progress"] for e in case.events(flow=flow, level="METRICS")]
        assert 2 in [record["metrics"].get("num_output_rows") for record in records], records
        assert not any("can't be" in str(record) for record in records)
        assert not (case.checkpoint(flow).folder / ".recount").exists()


def kept(case: Orders) -> None:
    """Files are put together and removed, and neither a table nor what a reader of changes is given is another one."""
    before = len(list(case.table("orders").glob("*.parquet")))
    done = {**case.maintained("--tables", "orders"), **case.maintained("--only", "event-log,orphans")}
    assert {step["state"] for step in done.values()} == {"COMPLETED"}, done
    assert {("optimize", "orders"), ("event-log", "event log")} <= done.keys()
    case.read_changes()
    assert +case.feed == Counter(case.rows("orders", "id, tax"))
    case.maintained("--only", "vacuum", "--tables", "orders")
    assert len(list(case.table("orders").glob("*.parquet"))) < before
    case.check()
    assert not has_news(case.project()).moved


def dropped(case: Orders) -> None:
    """A table goes with its checkpoints, and the others stay."""
    code, answer = case.call(main, "copied", "--yes", verb=["drop"])
    assert code == 0, answer
    assert not any(about.st_size for _, about in files_below(case.table("copied")))
    assert case.checkpoint("copied").epochs() == []
    case.check()


def renamed(case: StoredCase) -> None:
    """A table goes to another address with its quarantine, and its stream goes on from where it stood."""
    code, answer = case.call(main, "orders", "sales", "--yes", verb=["rename"])
    assert (code, answer["copied"]["files"] > 20) == (0, True), answer
    left = [case.table("orders"), case.table("orders_quarantine"), case.checkpoint("orders").folder]
    assert [contents(folder) for folder in left] == [{}, {}, {}]
    case.rewrite(TOLERANT[: TOLERANT.index("\n@dp.table\ndef copied")].replace("orders", "sales"))
    case.lands(3, (11, 1, 110))
    case.updated()
    assert case.rows("sales", "id, tax") == sorted((i, tax) for i, (_, tax) in case.oracle.items())
    assert len(case.rows("sales_quarantine", "id", "1")) == 1
    assert sum(tax for _, tax in case.rows("by_day")) == sum(tax for _, tax in case.oracle.values())
