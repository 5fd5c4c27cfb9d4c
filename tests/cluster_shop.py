"""A pipeline for a standalone cluster: submitted as a task of Airflow does it, with what its tables must be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
from deltalake import QueryBuilder

from headwater.graph.pipeline_project import open_project
from headwater.storage.delta_tables import small_table
from headwater_airflow.driver import submission
from headwater_airflow.driver.target import Target

SPEC = """
name: shop
cluster: {{python: {python}}}
spark:
  spark.master: {master}
  spark.driver.host: 127.0.0.1
  spark.driver.bindAddress: 127.0.0.1
  spark.executor.memory: 512m
  spark.cores.max: 2
  spark.scheduler.minRegisteredResourcesRatio: 1.0
  spark.driver.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.executor.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.sql.shuffle.partitions: 2
  spark.sql.codegen.wholeStage: false
  spark.sql.codegen.factoryMode: NO_CODEGEN
"""
SOURCE = """
from names import tidy
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.table
@dp.expect_or_drop("positive", "amount > 0")
def orders():
    rows = spark.readStream.schema("id INT, customer STRING, amount INT").json("{landing}")
    return rows.withColumn("customer", F.udf(tidy)("customer"))

@dp.table
def first_orders():
    return spark.readStream.table("orders").dropDuplicates(["customer"]).select("customer")

@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("total"))
"""
# Where the folder is there, each worker of Python leaves a mark in it and takes its time.
MODULE = """
import os
import time

def tidy(name):
    if os.path.isdir("{marks}"):
        open("{marks}/" + str(os.getpid()), "w").close()
        time.sleep(0.1)
    return name.strip().title()
"""


class Shop:
    """The pipeline, and what its tables must be."""

    def __init__(self, root: Path, master: str, places: str | None = None) -> None:
        """``places``: where storage and warehouse lie; folders below ``root``, if left out."""
        self.root, self.master = root, master
        self.landing, self.marks = root / "landing", root / "marks"
        self.orders: list[tuple[int, str, int]] = []
        folder = root / "shop"
        (folder / "transformations").mkdir(parents=True)
        self.landing.mkdir()
        (folder / "pipeline.yml").write_text(SPEC.format(python=sys.executable, master=master))
        (folder / "transformations" / "shop.py").write_text(SOURCE.format(landing=self.landing))
        (folder / "transformations" / "names.py").write_text(MODULE.format(marks=self.marks))
        self.project = open_project(
            folder, storage=f"{places or root}/storage", warehouse=f"{places or root}/warehouse"
        )

    def land(self, name: str, orders: list[tuple[int, str, int]]) -> None:
        """One file of orders."""
        rows = [{"id": i, "customer": customer, "amount": amount} for i, customer, amount in orders]
        (self.landing / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        self.orders += orders

    def submit(self) -> subprocess.Popen[str]:
        """Start an update with the settings, variables and arguments that a task of Airflow gives spark-submit."""
        target = Target(self.master)
        settings = [
            part
            for name, value in submission.driver_conf(self.project, target).items()
            for part in ("--conf", f"{name}={value}")
        ]
        arguments = submission.driver_arguments(self.project, "request", 1, 1)
        command = [submission.spark_submit(), "--master", self.master, *settings, submission.application()]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
        return subprocess.Popen(
            [*command, *arguments],
            env={**clean, **submission.driver_environment(self.project, target)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, process: subprocess.Popen[str]) -> None:
        """The update must end well, and its tables equal what plain Python makes of all orders."""
        out, log = process.communicate(timeout=200)
        assert process.returncode == 0, f"{out}\n{log}"[-6000:]
        tidy = [(i, customer.strip().title(), amount) for i, customer, amount in self.orders if amount > 0]
        customers = {customer for _, customer, _ in tidy}
        totals = {name: sum(amount for _, customer, amount in tidy if customer == name) for name in customers}
        assert self.rows("orders", "id", "customer", "amount") == sorted(tidy)
        assert self.rows("first_orders", "customer") == sorted((name,) for name in customers)
        assert self.rows("totals", "customer", "total") == sorted(totals.items())

    def wait_for_tasks(self, update: subprocess.Popen[str], workers: int) -> None:
        """Return when so many workers of Python have a part of a batch; forget them then."""
        ends = time.monotonic() + 150
        while len(list(self.marks.iterdir())) < workers:
            assert update.poll() is None, update.communicate()
            assert time.monotonic() < ends, "no task has begun"
            time.sleep(0.05)
        for mark in self.marks.iterdir():
            mark.unlink()

    def rows(self, table: str, *columns: str) -> list[tuple[object, ...]]:
        """The rows of a table now, read by delta-rs."""
        place = small_table(self.project.warehouse / "default" / table)
        query = QueryBuilder().register("t", place).execute("select * from t")
        content = pa.table(query.read_all())
        return sorted(zip(*(content[column].to_pylist() for column in columns), strict=True))
