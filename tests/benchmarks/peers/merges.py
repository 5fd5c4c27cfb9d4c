"""MERGE statements that guides teach for change data."""

from delta.tables import DeltaTable
from pyspark.sql import Window
from pyspark.sql import functions as F


def window_and_merge(batch, table, _number):
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


def two_steps_and_merge(batch, table, _number):
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
