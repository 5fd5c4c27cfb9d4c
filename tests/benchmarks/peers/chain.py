"""Kafka to bronze to silver to gold: three streams of one program, as one writes them by hand."""

import sys

from delta.tables import DeltaTable
from pyspark.sql import functions as F


def start(spark, servers, topic, root, interval):
    """Start the streams; each but the first reads the table of the one before it."""

    def table(name):
        return spark.readStream.format("delta").load(f"{root}/tables/{name}")

    def save(rows, name):
        folder = f"{root}/tables/{name}"
        # The next stream needs the table before it has a row.
        DeltaTable.createIfNotExists(spark).location(folder).addColumns(rows.schema).execute()
        return (
            rows.writeStream.format("delta")
            .option("checkpointLocation", f"{root}/checkpoints/{name}")
            .trigger(processingTime=interval)
            .start(folder)
        )

    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    bronze = messages.selectExpr("cast(value as string) as value", "partition", "offset", "timestamp")
    queries = [save(bronze, "bronze")]
    event = F.from_json("value", "id LONG, customer STRING, amount DOUBLE, sent DOUBLE")
    silver = table("bronze").select(event.alias("event")).select("event.*").where("amount > 0")
    queries.append(save(silver, "silver"))
    gold = table("silver").withColumn("cents", F.round(F.col("amount") * 100).cast("long"))
    return [*queries, save(gold, "gold")]


if __name__ == "__main__":
    from spark import session

    from headwater.runtime.submit import LONG_RUNNING

    spark = session(LONG_RUNNING)
    start(spark, *sys.argv[1:])
    spark.streams.awaitAnyTermination()
