"""A driver that stands still for longer than its lease lasts, while another machine takes over, writes nothing when it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.object_stores import StoreServer, store_server, stored_rows
from tests.pipeline_case import SMALL_QUERIES, spec_of

from headwater.event_log import reader
from headwater.storage.access import object_store
from headwater.storage.place import place_of

CHECKOUT = Path(__file__).parents[2]
SOURCE = """
import os
import time
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@F.udf("long")
def slowly(value):
    if os.path.isdir("MARKS"):
        open("MARKS/begun", "w").close()
        time.sleep(0.2)
    return value

@dp.table
def orders():
    rows = spark.readStream.format("json").schema("id long, customer string, amount long").load("LANDING")
    return rows.withColumn("amount", slowly("amount"))

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""
SPEC = "name: shop\nschema: shop\n" + spec_of({"spark.sql.shuffle.partitions": "1", **SMALL_QUERIES})


class Machine:
    """Starts drivers with a cache of its own: no lock of one is seen by another."""

    def __init__(self, root: Path, name: str, folder: Path) -> None:
        self.log, self.folder, self.cache = root / f"{name}.log", folder, root / name

    @contextmanager
    def driver(self, *verb: str) -> Iterator[subprocess.Popen[str]]:
        """A driver that waits for the lease as a scheduled run does, or that of another verb, which does not wait."""
        roots = ["--storage=s3://lake/storage", "--warehouse=s3://lake/warehouse", "--json"]
        scheduled = ("run", str(self.folder), f"--request-id={self.cache.name}")
        argv = [sys.executable, "-m", "headwater", *(verb or scheduled)]
        shared = Path(os.environ.get("HEADWATER_CACHE") or Path.home() / ".cache" / "headwater")
        self.cache.mkdir(exist_ok=True)
        for name in ("jars", "classes"):
            if not (self.cache / name).exists():
                (self.cache / name).symlink_to(shared / name)
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [*argv, *roots],
                cwd=CHECKOUT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(["include", "jobs"]),
                    "HEADWATER_CACHE": str(self.cache),
                },
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def ended(process: subprocess.Popen[str], machine: Machine) -> dict[str, Any]:
    """The report of a driver that comes to its end."""
    out, _ = process.communicate(timeout=240)
    assert out.strip(), machine.log.read_text()[-4000:]
    report: dict[str, Any] = json.loads(out.strip().rpartition("\n")[2])
    return report


def rows_of(name: str) -> list[dict[str, Any]]:
    return stored_rows(f"s3://lake/warehouse/shop/{name}")


@pytest.fixture
def store() -> Iterator[StoreServer]:
    with store_server() as server:
        server.make_bucket("lake")
        yield server


@pytest.mark.timeout(500)
def test_it_writes_nothing_when_it_wakes(store: StoreServer, tmp_path: Path):
    """Frozen in the middle of a batch for over a minute, while another machine runs the same update to its end: it fails as one that
    has lost its lease, and the tables are the oracle's, each batch recorded once.
    """
    folder, landing, marks = tmp_path / "shop", tmp_path / "landing", tmp_path / "marks"
    (folder / "transformations").mkdir(parents=True)
    landing.mkdir()
    marks.mkdir()
    (folder / "pipeline.yml").write_text(SPEC)
    source = SOURCE.replace("MARKS", str(marks)).replace("LANDING", str(landing))
    (folder / "transformations" / "tables.py").write_text(source)
    rows = [{"id": i, "customer": f"c{i % 5}", "amount": i} for i in range(40)]
    (landing / "1.json").write_text("\n".join(map(json.dumps, rows)))
    first, second = Machine(tmp_path, "first", folder), Machine(tmp_path, "second", folder)
    with first.driver() as frozen:
        ends = time.monotonic() + 120
        while not (marks / "begun").exists():
            assert frozen.poll() is None, first.log.read_text()[-4000:]
            assert time.monotonic() < ends, first.log.read_text()[-4000:]
            time.sleep(0.05)
        os.killpg(frozen.pid, signal.SIGSTOP)
        (marks / "begun").unlink()
        marks.rmdir()
        with second.driver() as other:
            report = ended(other, second)
        assert report["state"] == "COMPLETED", report
        before = {name: rows_of(name) for name in ("orders", "totals")}
        os.killpg(frozen.pid, signal.SIGCONT)
        report = ended(frozen, first)
    assert report["state"] == "FAILED", report
    conditions = {
        error["condition"] for error in [report["error"], *(f["error"] for f in report["flows"])] if error
    }
    assert "LEASE_LOST" in conditions, report
    after = {name: rows_of(name) for name in ("orders", "totals")}
    assert after == before
    assert sorted(row["id"] for row in after["orders"]) == list(range(40))
    totals = Counter[str]()
    for row in rows:
        totals[row["customer"]] += row["amount"]
    assert {row["customer"]: row["total"] for row in after["totals"]} == totals
    state = place_of("s3://lake/storage", store=object_store("s3")) / "pipelines" / "shop"
    batches = [
        record["origin"]["batch_id"]
        for record in reader.events(state, event_type="flow_progress", flow="orders")
        if record["details"]["flow_progress"]["status"] == "RUNNING"
        and record["origin"]["batch_id"] is not None
    ]
    assert batches == [0]


HELD = """
from pyspark import pipelines as dp

@dp.table
@dp.expect_or_quarantine("positive", "amount > 0")
def orders():
    return spark.readStream.format("json").schema("id long, amount long").load("LANDING")
"""


@pytest.mark.timeout(600)
def test_a_frozen_replay_writes_nothing_when_it_wakes(store: StoreServer, tmp_path: Path):
    """Frozen after its last look at the lease, while it writes rows that it has yet to commit; another machine replays them
    meanwhile. Delta refuses its commit, and each row is in the table once.
    """
    folder, landing = tmp_path / "shop", tmp_path / "landing"
    (folder / "transformations").mkdir(parents=True)
    landing.mkdir()
    (folder / "pipeline.yml").write_text(SPEC)
    source = folder / "transformations" / "tables.py"
    source.write_text(HELD.replace("LANDING", str(landing)))
    rows = [{"id": i, "amount": i % 2 - 1} for i in range(20)]
    (landing / "1.json").write_text("\n".join(map(json.dumps, [*rows, {"id": 20, "amount": 1}])))
    first, second = Machine(tmp_path, "first", folder), Machine(tmp_path, "second", folder)
    with first.driver() as update:
        assert ended(update, first)["state"] == "COMPLETED"
    source.write_text(source.read_text().replace("amount > 0", "amount > -9"))
    verb = ("quarantine", "replay", str(folder), "orders")
    known = len(store.requests())
    with first.driver(*verb) as frozen:
        ends = time.monotonic() + 180
        while not any(
            method == "PUT" and "/shop/orders/part-" in path for method, path in store.requests()[known:]
        ):
            assert frozen.poll() is None, first.log.read_text()[-4000:]
            assert time.monotonic() < ends, first.log.read_text()[-4000:]
            time.sleep(0.01)
        os.killpg(frozen.pid, signal.SIGSTOP)
        time.sleep(62)
        with second.driver(*verb) as other:
            report = ended(other, second)
        assert [flow["replayed"] for flow in report["flows"]] == [20], report
        assert sorted(row["id"] for row in rows_of("orders")) == list(range(21))
        os.killpg(frozen.pid, signal.SIGCONT)
        report = ended(frozen, first)
    assert report["error"]["condition"] in ("FLOW_INTERRUPTED", "LEASE_LOST"), report
    assert sorted(row["id"] for row in rows_of("orders")) == list(range(21))
    assert {row["_status"] for row in rows_of("orders_quarantine")} == {"replayed"}
