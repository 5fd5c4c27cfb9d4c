"""Who merges changes into a table: this engine, and the MERGE statements that guides teach."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headwater.definitions.change_flow import ChangeFlow
from headwater_spark.auto_cdc.apply_changes import ChangeTarget, apply_changes
from headwater_spark.auto_cdc.change_columns import change_columns
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

SCHEMA = "key BIGINT, name STRING, amount BIGINT, at BIGINT, op STRING"


@dataclass
class Contender:
    """One way to merge, into a table of its own. ``seconds``: of each batch."""

    name: str
    table: Path
    merge: Callable[[DataFrame, Path, int], None]
    history: bool
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds of the median batch; the first, which meets a cold JVM, is left out."""
        return statistics.median(self.seconds[1:])


def ours(spark: SparkSession, *, history: bool) -> Callable[[DataFrame, Path, int], None]:
    """AUTO CDC; what it remembers lies beside the table."""
    flow = ChangeFlow(
        "events", ("key",), "at", apply_as_deletes="op = 'D'", except_columns=("op",), history=history
    )
    if history:
        flow = ChangeFlow(**{**flow.__dict__, "except_columns": ("op", "at")})
    columns = change_columns(flow, spark.createDataFrame([], SCHEMA), None)

    def merge(batch: DataFrame, table: Path, number: int) -> None:
        metadata = json.dumps({"pipeline": "bench", "flow": "f", "epoch": 0, "batch": number})
        target = ChangeTarget(table, table.with_name(f"{table.name}-memory"))
        apply_changes(batch, columns, target, BatchTransaction("bench.f@0", number, metadata))

    return merge


def window_and_merge(batch: DataFrame, table: Path, _number: int) -> None:
    """Type 1 as guides have it: the last event of each key of the batch by a window, then one MERGE."""
    last = Window.partitionBy("key").orderBy(F.col("at").desc())
    rows = batch.withColumn("n", F.row_number().over(last)).where("n = 1").drop("n")
    values = {name: f"s.{name}" for name in ("key", "name", "amount", "at")}
    (
        DeltaTable.forPath(batch.sparkSession, str(table)).alias("t").merge(rows.alias("s"), "t.key = s.key")
        .whenMatchedDelete("s.op = 'D' AND s.at > t.at")
        .whenMatchedUpdate("s.at > t.at", set=values)
        .whenNotMatchedInsert("s.op <> 'D'", values=values)
        .execute()
    )  # fmt: skip


def two_steps_and_merge(batch: DataFrame, table: Path, _number: int) -> None:
    """Type 2 as Delta's documentation has it: changed rows are staged twice, once to close and once to insert."""
    last = Window.partitionBy("key").orderBy(F.col("at").desc())
    rows = batch.withColumn("n", F.row_number().over(last)).where("n = 1").drop("n")
    target = DeltaTable.forPath(batch.sparkSession, str(table))
    open_rows = target.toDF().where("__END_AT is null").select("key", F.col("name").alias("old_name"), F.col("amount").alias("old_amount"))  # fmt: skip
    changed = rows.join(open_rows, "key").where("op <> 'D' and (name <> old_name or amount <> old_amount)").drop("old_name", "old_amount")  # fmt: skip
    staged = changed.withColumn("merge_key", F.lit(None).cast("bigint")).unionByName(
        rows.withColumn("merge_key", F.col("key"))
    )
    values = {"key": "s.key", "name": "s.name", "amount": "s.amount", "__START_AT": "s.at", "__END_AT": "null"}  # fmt: skip
    (
        target.alias("t").merge(staged.alias("s"), "t.key = s.merge_key and t.__END_AT is null")
        .whenMatchedUpdate("s.op = 'D' or s.name <> t.name or s.amount <> t.amount", set={"__END_AT": "s.at"})
        .whenNotMatchedInsert("s.op <> 'D'", values=values)
        .execute()
    )  # fmt: skip
