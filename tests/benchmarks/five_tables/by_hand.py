"""The peer: the same five queries as one writes them by hand, one after another, with the same Spark settings."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.runtime.java import java_environment
from headwater.runtime.submit import submit_conf

landing, root = sys.argv[1:]
os.environ.update(java_environment())
builder = SparkSession.builder.master("local[*]").appName("by hand")
for key, value in submit_conf({}).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()


def save(frame, name):
    query = (
        frame.writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoints/{name}")
        .trigger(availableNow=True)
        .start(f"{root}/tables/{name}")
    )
    query.awaitTermination()


def stream(name):
    return spark.readStream.format("delta").load(f"{root}/tables/{name}")


save(spark.readStream.format("json").schema("id LONG, customer STRING, amount DOUBLE").load(landing), "t1")
save(stream("t1").where("amount > 0"), "t2")
save(stream("t2").withColumn("cents", F.round(F.col("amount") * 100).cast("long")), "t3")
save(stream("t2").select("id", F.upper("customer").alias("customer")), "t4")
save(stream("t3").where("cents > 5000"), "t5")
spark.stop()
