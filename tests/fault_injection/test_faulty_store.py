"""Updates on a store that answers 503, 409, late or not at all: rows are right, and what can't go on fails as transient.

The store is moto's behind a proxy with faults.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faulty_store import Fault, Plan, faulty_store
from tests.object_stores import store_server, stored_rows
from tests.seeds import SEED

from headwater.event_log import reader
from headwater.storage.access import object_store
from headwater.storage.place import place_of

CHECKOUT = Path(__file__).parents[2]
SOURCE = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.table
@dp.expect_or_drop("positive", "amount > 0")
def orders():
    return spark.readStream.format("json").schema("id long, customer string, amount long").option("maxFilesPerTrigger", 1).load("LANDING")

@dp.table
def customers():
    return spark.readStream.table("orders").dropDuplicates(["customer"]).select("customer")

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="orders", keys=["customer"], sequence_by="id", stored_as_scd_type=1)

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""
SPEC = "name: shop\nschema: shop\nspark:\n  spark.sql.shuffle.partitions: 1\n"
_SHARE_OF_REQUESTS = 0.04
_ATTEMPTS = 6


def land(folder: Path, number: int) -> list[dict[str, Any]]:
    rows = [
        {"id": number * 100 + i, "customer": f"c{(number + i * i) % 7}", "amount": i - 3} for i in range(50)
    ]
    (folder / f"f{number}.json").write_text("\n".join(map(json.dumps, rows)))
    return [row for row in rows if row["amount"] > 0]


def rows_of(name: str) -> list[dict[str, Any]]:
    return stored_rows(f"s3://lake/warehouse/shop/{name}")


def update(folder: Path, endpoint: str, report: Path) -> dict[str, Any]:
    """Run one to its end; its report."""
    roots = ["--storage=s3://lake/storage", "--warehouse=s3://lake/warehouse", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "run", str(folder), *roots],
        check=False,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["include", "jobs"]), "AWS_ENDPOINT_URL": endpoint},
        capture_output=True,
        text=True,
        timeout=280,
    )
    report.write_text(done.stdout + done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return answer


def test_rows_are_right_whatever_the_store_does(tmp_path: Path):
    """A share of all requests fails in five ways, puts whose answer is lost among them. Each round of updates ends with one that
    completes; those before it say that they are transient. The tables are the oracle's, and each batch has one record.
    """
    folder, landing = tmp_path / "shop", tmp_path / "landing"
    (folder / "transformations").mkdir(parents=True)
    landing.mkdir()
    (folder / "pipeline.yml").write_text(SPEC)
    (folder / "transformations" / "tables.py").write_text(SOURCE.replace("LANDING", str(landing)))
    plan, kept = Plan(SEED, _SHARE_OF_REQUESTS), []
    with store_server() as store, faulty_store(store.endpoint, plan) as endpoint:
        store.make_bucket("lake")
        for rounds in range(2):
            kept += [row for number in (0, 1, 2) for row in land(landing, rounds * 3 + number)]
            for attempt in range(_ATTEMPTS):
                report = update(folder, endpoint, tmp_path / f"{rounds}-{attempt}.log")
                if report.get("state") == "COMPLETED":
                    break
                errors = [report["error"], *(flow["error"] for flow in report["flows"])]
                assert any(errors), report
                assert all(error["transient"] for error in errors if error), errors
            else:
                raise AssertionError(f"no update of {_ATTEMPTS} completed: see {tmp_path}")
            assert sorted(row["id"] for row in rows_of("orders")) == sorted(row["id"] for row in kept)
            totals = Counter[str]()
            for row in kept:
                totals[row["customer"]] += row["amount"]
            assert {row["customer"]: row["total"] for row in rows_of("totals")} == totals
            assert sorted(row["customer"] for row in rows_of("customers")) == sorted(totals)
            newest = {row["customer"]: row["id"] for row in sorted(kept, key=lambda row: row["id"])}
            assert {row["customer"]: row["id"] for row in rows_of("latest")} == newest
        state = place_of("s3://lake/storage", store=object_store("s3")) / "pipelines" / "shop"
        batches = Counter(
            (record["origin"]["flow_name"], record["origin"]["batch_id"])
            for record in reader.events(state, event_type="flow_progress")
            if record["details"]["flow_progress"]["status"] == "RUNNING"
            and record["origin"]["flow_name"] == "orders"
            and record["origin"]["batch_id"] is not None
        )
    assert set(batches.values()) == {1}
    assert sorted(number for _, number in batches) == list(range(len(batches)))
    assert set(plan.happened) == set(Fault)
    assert plan.lost_puts
