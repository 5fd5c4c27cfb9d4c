"""A pipeline with both roots on S3, its updates as processes of their own, and what its tables must be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.object_stores import stored_rows
from tests.pipeline_case import SMALL_QUERIES, spec_of

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
SPEC = "name: shop\nschema: shop\n" + spec_of({"spark.sql.shuffle.partitions": "1", **SMALL_QUERIES})
_ROOTS = ["--storage=s3://lake/storage", "--warehouse=s3://lake/warehouse", "--json"]
_LONGEST_UPDATE_SECONDS = 280


class ShopOnS3:
    """The pipeline, what was landed for it, and its drivers. The bucket is ``lake``."""

    def __init__(self, root: Path) -> None:
        self.folder, self.landing, self.logs = root / "shop", root / "landing", root / "logs"
        (self.folder / "transformations").mkdir(parents=True)
        self.landing.mkdir()
        self.logs.mkdir()
        (self.folder / "pipeline.yml").write_text(SPEC)
        (self.folder / "transformations" / "tables.py").write_text(
            SOURCE.replace("LANDING", str(self.landing))
        )
        self.files = self.drivers = 0
        self.kept: list[dict[str, Any]] = []

    def land(self, files: int) -> None:
        """Land files of fifty orders; those that the rule drops are not in ``kept``."""
        for number in range(self.files, self.files + files):
            rows = [
                {"id": number * 100 + i, "customer": f"c{(number + i * i) % 7}", "amount": i - 3}
                for i in range(50)
            ]
            (self.landing / f"f{number}.json").write_text("\n".join(map(json.dumps, rows)))
            self.kept += [row for row in rows if row["amount"] > 0]
        self.files += files

    def start(self, endpoint: str) -> subprocess.Popen[str]:
        """Begin an update that reaches its store there."""
        self.drivers += 1
        with (self.logs / f"{self.drivers}.log").open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "headwater", "run", str(self.folder), *_ROOTS],
                cwd=CHECKOUT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(["include", "jobs"]),
                    "AWS_ENDPOINT_URL": endpoint,
                },
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def report(self, update: subprocess.Popen[str]) -> dict[str, Any]:
        """What an update says when it has ended."""
        out, _ = update.communicate(timeout=_LONGEST_UPDATE_SECONDS)
        (self.logs / f"{self.drivers}.out").write_text(out)
        assert out.strip(), (self.logs / f"{self.drivers}.log").read_text()[-4000:]
        answer: dict[str, Any] = json.loads(out.strip().rpartition("\n")[2])
        return answer

    def check_tables(self) -> None:
        """They hold what plain Python makes of all that was landed."""
        assert sorted(row["id"] for row in _rows("orders")) == sorted(row["id"] for row in self.kept)
        totals = Counter[str]()
        for row in self.kept:
            totals[row["customer"]] += row["amount"]
        assert {row["customer"]: row["total"] for row in _rows("totals")} == totals
        assert sorted(row["customer"] for row in _rows("customers")) == sorted(totals)
        newest = {row["customer"]: row["id"] for row in sorted(self.kept, key=lambda row: row["id"])}
        assert {row["customer"]: row["id"] for row in _rows("latest")} == newest

    def check_records(self) -> None:
        """Each batch of ``orders`` has one record."""
        state = place_of("s3://lake/storage", store=object_store("s3")) / "pipelines" / "shop"
        batches = Counter(
            record["origin"]["batch_id"]
            for record in reader.events(state, event_type="flow_progress", flow="orders")
            if record["details"]["flow_progress"]["status"] == "RUNNING"
            and record["origin"]["batch_id"] is not None
        )
        assert set(batches.values()) == {1}, batches
        assert sorted(batches) == list(range(len(batches)))


def says_that_it_passes(report: dict[str, Any]) -> bool:
    """Whether an update that failed has errors, and all of them are transient. What was skipped for them passes with them."""
    failed = [flow["error"] for flow in report["flows"] if flow["state"] == "FAILED"]
    errors = [error for error in [report["error"], *failed] if error]
    return bool(errors) and all(error["transient"] for error in errors)


def _rows(name: str) -> list[dict[str, Any]]:
    return stored_rows(f"s3://lake/warehouse/shop/{name}")
