"""The queries of many_tables as one writes them by hand, one after another."""

import sys

from pyspark.sql import functions as F


def main(spark, landing, root, flows):
    """Take in what is new, table by table."""

    def save(frame, name):
        query = (
            frame.writeStream.format("delta")
            .option("checkpointLocation", f"{root}/checkpoints/{name}")
            .trigger(availableNow=True)
            .start(f"{root}/tables/{name}")
        )
        query.awaitTermination()

    save(
        spark.readStream.format("json").schema("id LONG, customer STRING, amount DOUBLE").load(landing), "t1"
    )
    for number in range(2, int(flows) + 1):
        above = spark.readStream.format("delta").load(f"{root}/tables/t{number // 2}")
        save(above.where("amount > 0").withColumn(f"cents_{number}", F.round(F.col("amount") * 100).cast("long")), f"t{number}")  # fmt: skip


if __name__ == "__main__":
    from spark import session

    spark = session()
    main(spark, *sys.argv[1:])
    spark.stop()
