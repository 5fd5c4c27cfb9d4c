"""A pipeline whose storage and warehouse lie on S3 has the rows of an oracle, also after its driver was killed (moto answers)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.object_stores import StoreServer, store_server

from headwater.storage.access import object_store
from headwater.storage.delta_tables import small_table
from headwater.storage.place import place_of

CHECKOUT = Path(__file__).parents[2]
SOURCE = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.table
@dp.expect_or_drop("positive", "amount > 0")
def orders():
    return spark.readStream.format("json").schema("id long, customer string, amount long, at timestamp").load("{landing}")

@dp.table
def customers():
    return spark.readStream.table("orders").dropDuplicates(["customer"]).select("customer")

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="orders", keys=["customer"], sequence_by="at", stored_as_scd_type=1)

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[StoreServer]:
    with store_server() as server:
        server.make_bucket("lake")
        yield server


def land(folder: Path, number: int) -> list[dict[str, Any]]:
    rows = [
        {
            "id": number * 1000 + i,
            "customer": f"c{(number * 7 + i * i) % 5}",
            "amount": (i * 13 + number) % 50 - 2,
            "at": f"2026-01-0{number}T00:{i // 60:02d}:{i % 60:02d}.000Z",
        }
        for i in range(200)
    ]
    (folder / f"f{number}.json").write_text("\n".join(map(json.dumps, rows)))
    return [row for row in rows if row["amount"] > 0]


def rows_of(name: str) -> list[dict[str, Any]]:
    from deltalake import QueryBuilder

    # Updates of other tests in this process have other stores.
    table = small_table(place_of(f"s3://lake/warehouse/shop/{name}", store=object_store("s3")))
    answer = QueryBuilder().register("t", table).execute("select * from t").read_all()
    rows: list[dict[str, Any]] = pa.table(answer).to_pylist()
    return rows


def check(kept: list[dict[str, Any]]) -> None:
    """The tables hold what the oracle says."""
    totals = Counter[str]()
    for row in kept:
        totals[row["customer"]] += row["amount"]
    newest = {row["customer"]: row["id"] for row in sorted(kept, key=lambda row: row["at"])}
    assert sorted(row["id"] for row in rows_of("orders")) == sorted(row["id"] for row in kept)
    assert {row["customer"]: row["total"] for row in rows_of("totals")} == totals
    assert {row["customer"]: row["id"] for row in rows_of("latest")} == newest
    assert sorted(row["customer"] for row in rows_of("customers")) == sorted(newest)


def test_updates_on_s3(s3: StoreServer, tmp_path: Path):
    """A first update, one whose driver is killed after its first table, the next one, and one without news."""
    folder, landing = tmp_path / "shop", tmp_path / "landing"
    (folder / "transformations").mkdir(parents=True)
    landing.mkdir()
    (folder / "pipeline.yml").write_text(
        "name: shop\nschema: shop\nspark:\n  spark.sql.shuffle.partitions: 2\n"
    )
    source = SOURCE.replace("{landing}", str(landing))
    (folder / "transformations" / "tables.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["include", "jobs", "plugins"])}
    roots = ["--storage=s3://lake/storage", "--warehouse=s3://lake/warehouse"]
    argv = [sys.executable, "-m", "headwater", "run", str(folder), *roots]

    def update() -> str:
        done = subprocess.run(
            argv, check=False, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    kept = land(landing, 1)
    update()
    check(kept)

    kept += land(landing, 2)
    log = tmp_path / "killed.log"
    with log.open("w") as output:
        driver = subprocess.Popen(
            argv,
            cwd=CHECKOUT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ends = time.monotonic() + 200
        while "orders is done" not in log.read_text() and driver.poll() is None and time.monotonic() < ends:
            time.sleep(0.1)
        assert driver.poll() is None, log.read_text()
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    update()
    check(kept)

    assert "no source has moved" in update()
    with s3.counted() as requests:
        assert "no source has moved" in update()
    assert requests.total() <= 30, requests
