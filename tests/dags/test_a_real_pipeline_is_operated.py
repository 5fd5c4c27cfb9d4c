"""A pipeline in a running Airflow with real submits: run, break, repair, fill again and tidy, all by its DAGs' forms."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.dags.live_airflow import wait_for

from headwater.checkpoints.layout import flow_checkpoint

pytestmark = pytest.mark.timeout(600)
DAG_FILE = """
from headwater_airflow.dag import PipelineBackfillDag, PipelineDag, PipelineMaintenanceDag, PipelineRepairDag

settings = {"default_args": {"retries": 0}, "schedule": None}
shop = PipelineDag("shop", **settings)
backfill = PipelineBackfillDag("shop", tables=["purchases"], column="at", **settings)
maintenance = PipelineMaintenanceDag("shop", **settings)
repair = PipelineRepairDag("shop", **settings)
"""
SPEC = """
name: shop
schema: shop
configuration: {{landing: {landing}}}
spark: {{spark.sql.shuffle.partitions: "1"}}
airflow: {{dags: []}}
"""
SOURCE = """
from headwater import pipelines as dp
from pyspark.sql import functions as F

@dp.table
@dp.expect_or_quarantine("positive", "amount > 0")
def purchases():
    read = spark.readStream.schema("id INT, at TIMESTAMP, amount INT").json(spark.conf.get("landing"))
    return read.withColumn("tax", F.col("amount") * 2)
"""
RANGE = {"column": "at", "from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z"}


class Shop:
    """The pipeline in Airflow."""

    dags = ("shop", "shop_backfill", "shop_maintenance", "shop_repair")

    def __init__(self, airflow) -> None:
        self.airflow, self.folder = airflow, airflow.folder / "pipelines" / "shop"
        self.landing = airflow.folder / "shop_landing"
        self.landing.mkdir()
        (self.folder / "transformations").mkdir(parents=True)
        (self.folder / "pipeline.yml").write_text(SPEC.format(landing=self.landing))
        self.source = self.folder / "transformations" / "purchases.py"
        self.source.write_text(SOURCE)
        (airflow.folder / "dags" / "shop.py").write_text(DAG_FILE)
        self.states: dict[str, dict[str, str]] = {}
        for dag_id in self.dags:
            airflow.client.wait_for_dag(dag_id, 60)
            airflow.client.pause(dag_id, paused=False)

    def land(self, *rows: tuple[int, int, int]) -> None:
        """A file of orders: id, day, amount."""
        lines = [
            json.dumps({"id": id_, "at": f"2026-01-{day:02d}T12:00:00Z", "amount": amount})
            for id_, day, amount in rows
        ]
        (self.landing / f"{rows[0][0]}.json").write_text("\n".join(lines))

    def ran(self, dag_id: str, run_id: str, **form) -> tuple[str, str]:
        """A run of a DAG to its end: its state, and what its tasks have logged."""
        client = self.airflow.client
        client.trigger(dag_id, run_id, **form)

        def ended():
            return next(
                (run for run in client.runs(dag_id) if run.run_id == run_id and run.is_finished), None
            )

        state = wait_for(ended, 180, every=0.5).state
        logs = sorted(
            Path(self.airflow.services.home / "logs").glob(f"dag_id={dag_id}/run_id={run_id}/**/*.log")
        )
        return state, "\n".join(log.read_text() for log in logs)

    def rows(self) -> list[tuple[int, int]]:
        """What the table has: id and tax."""
        table = DeltaTable(self.airflow.table("purchases")).to_pyarrow_table(columns=["id", "tax"])
        return sorted((row["id"], row["tax"]) for row in table.to_pylist())


@pytest.fixture
def shop(live_airflow):
    operated = Shop(live_airflow)
    yield operated
    for dag_id in operated.dags:
        live_airflow.client.pause(dag_id, paused=True)
    (live_airflow.folder / "dags" / "shop.py").unlink()


def test_it_runs_breaks_is_repaired_filled_again_and_tidied(shop):
    """Every form is posted as the interface posts it; the table has each row once at the end, by the newest definition."""
    shop.land((1, 1, 5), (2, 2, 5), (3, 2, -5))
    state, log = shop.ran("shop", "first")
    assert state == "success", log[-3000:]
    assert shop.rows() == [(1, 10), (2, 10)]

    state_folder = shop.airflow.folder / "storage" / "pipelines" / "shop"
    epoch = flow_checkpoint(state_folder, "purchases", "purchases").epoch_folder(0)
    for part in ("offsets", "commits"):
        shutil.rmtree(epoch / part)
    shop.land((4, 2, 5))
    state, log = shop.ran("shop", "broken")
    assert (state, "CHECKPOINT_REWOUND" in log, "headwater repair" in log) == ("failed", True, True), log[
        -3000:
    ]
    assert shop.rows() == [(1, 10), (2, 10)]

    state, log = shop.ran("shop_repair", "look", flow="purchases", action="rebuild", dry_run=True)
    assert (state, (epoch / "offsets").exists()) == ("success", False), log[-3000:]
    state, log = shop.ran("shop_repair", "repair", flow="purchases", action="rebuild", dry_run=False)
    assert state == "success", log[-3000:]
    state, log = shop.ran("shop", "repaired")
    assert state == "success", log[-3000:]
    assert shop.rows() == [(1, 10), (2, 10), (4, 10)]

    shop.source.write_text(SOURCE.replace("* 2", "* 3").replace("amount > 0", "amount > -9"))
    state, log = shop.ran("shop_backfill", "look", tables=["purchases"], **RANGE)
    assert state == "success", log[-3000:]
    assert shop.rows() == [(1, 10), (2, 10), (4, 10)]
    state, log = shop.ran("shop_backfill", "fill", tables=["purchases"], dry_run=False, **RANGE)
    assert state == "success", log[-3000:]
    assert shop.rows() == [(1, 10), (2, 15), (3, -15), (4, 15)]

    state, log = shop.ran("shop_maintenance", "tidy")
    assert state == "success", log[-3000:]
    shop.land((5, 3, 5))
    state, log = shop.ran("shop", "last")
    assert state == "success", log[-3000:]
    assert shop.rows() == [(1, 10), (2, 15), (3, -15), (4, 15), (5, 15)]
