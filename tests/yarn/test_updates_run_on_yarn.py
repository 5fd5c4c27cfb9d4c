"""A task of Airflow runs its updates on a real YARN, in cluster mode: the driver finds nothing of the checkout but what was sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tests.dags.airflow_home as airflow_home  # before Airflow
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable
from tests.yarn.mini_yarn import mini_yarn

from headwater.runtime.class_sharing import spark_home
from headwater_airflow.operators.run_update import RunUpdateOperator

SPEC = """
name: shop
cluster: {{python: {python}}}
spark:
  spark.yarn.jars: local:{spark}/jars/*
  spark.yarn.stagingDir: file://{root}/staging
  spark.executor.instances: 1
  spark.executor.memory: 512m
  spark.driver.memory: 800m
  spark.sql.shuffle.partitions: 2
  spark.executor.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.driver.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
SOURCE = """
from names import tidy
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.table
@dp.expect_or_drop("positive", "amount > 0")
def orders():
    files = spark.readStream.option("maxFilesPerTrigger", 1).schema("id INT, customer STRING, amount INT")
    return files.json("{landing}").withColumn("customer", F.udf(tidy)("customer"))

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""
TIDY = "def tidy(name):\n    assert name != 'bad', 'a bad name'\n    return name.strip().title()\n"


class Shop:
    """The pipeline, and tasks that update it."""

    def __init__(self, root: Path) -> None:
        self.root, self.landing, self.folder = root, root / "landing", root / "pipelines" / "shop"
        self.landing.mkdir()
        (self.folder / "transformations").mkdir(parents=True)
        spec = SPEC.format(python=sys.executable, spark=spark_home(), root=root)
        (self.folder / "pipeline.yml").write_text(spec)
        (self.folder / "transformations" / "shop.py").write_text(SOURCE.format(landing=self.landing))
        (self.folder / "transformations" / "names.py").write_text(TIDY)

    def land(self, name: str, *orders: tuple[int, str, int]) -> None:
        rows = [{"id": i, "customer": customer, "amount": amount} for i, customer, amount in orders]
        (self.landing / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def task(self) -> RunUpdateOperator:
        return RunUpdateOperator(task_id="update", pipeline="shop")

    def totals(self) -> list[tuple[str, int]]:
        rows = DeltaTable(str(self.root / "warehouse" / "default" / "totals")).to_pyarrow_table().to_pylist()
        return sorted((row["customer"], row["total"]) for row in rows)


def attempt(task: RunUpdateOperator, run: str) -> dict[str, Any]:
    """One attempt of a run of the task."""
    instance = SimpleNamespace(dag_id="shop", run_id=run, try_number=1, max_tries=3)
    return task.execute({"ti": instance, "params": {}})


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A pipeline whose connection leads to a running YARN."""
    for name in ("pipelines", "storage", "warehouse"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("HEADWATER_HOME", str(airflow_home.CHECKOUT))
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    with mini_yarn(tmp_path / "yarn") as conf:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
        yield Shop(tmp_path)


@pytest.mark.timeout(1200)
def test_updates_end_as_beside_the_task(shop: Shop):
    """Counts and tables of one that is completed, nothing to do, and a failure with its condition, which no retry can help."""
    shop.land("1", (1, " ann ", 5), (2, "bo", 0), (3, "Ann", 2))
    report = attempt(shop.task(), "first")
    assert report["state"] == "COMPLETED"
    rows = {flow["flow"]: (flow["input_rows"], flow["dropped_rows"]) for flow in report["flows"]}
    assert rows["orders"] == (3, 1)
    assert shop.totals() == [("Ann", 7)]
    assert attempt(shop.task(), "no news")["flows"][0]["batches"] == 0

    shop.land("bad", (1000, "bad", 1))
    with pytest.raises(AirflowFailException, match=r"\[FLOW_FAILED\](.|\n)*a bad name"):
        attempt(shop.task(), "failing")
    assert shop.totals() == [("Ann", 7)]
