# Databricks notebook source
# MAGIC %md
# MAGIC # Exercise 3: a stream and a dimension
# MAGIC
# MAGIC Events get the name and country of their user. Without a hint both sides may be shuffled over all partitions; a small
# MAGIC dimension is better sent to where the events are.

# COMMAND ----------

from headwater.testing import local_session

spark = local_session()

# COMMAND ----------

from exercise_data import *  # %run ./exercise_data.py

# COMMAND ----------

from pyspark.sql import functions as F

from headwater import pipelines as dp

# The same for both: no hint is taken for granted, and a shuffle has as many partitions as on a cluster.
CLUSTER = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "64",
}

# COMMAND ----------


def with_users(events, dimension):
    # ANSWER: every event, with user_name and country_code where the user is known
    return events.join(dimension, "user_id", "left")
    # END


def with_users_sent(events, dimension):
    # ANSWER: the same rows, with the dimension sent to the events
    return events.join(F.broadcast(dimension), "user_id", "left")
    # END


# COMMAND ----------


@dp.table(spark_conf=CLUSTER)
def shuffled():
    events = spark.readStream.option("maxFilesPerTrigger", 1).table("raw.events")
    return with_users(events, spark.read.table("raw.users"))


@dp.table(spark_conf=CLUSTER)
def sent():
    events = spark.readStream.option("maxFilesPerTrigger", 1).table("raw.events")
    return with_users_sent(events, spark.read.table("raw.users"))


# COMMAND ----------

if __name__ == "__main__":
    from headwater_exercises import Workbench, check

    bench = Workbench(globals().get("__file__", "exercise_3.ipynb"))
    bench.append("raw.users", users(50), USER)
    for number in range(3):
        rows = [event(100 * number + n, n % 60, user=f"u{n % 60}") for n in range(100)]
        bench.append("raw.events", rows, EVENT)
    bench.update("shuffled")
    bench.update("sent")
    print(f"shuffled: {bench.seconds('shuffled'):.2f} s a batch, sent: {bench.seconds('sent'):.2f} s a batch")
    check(3, bench, with_users=with_users, with_users_sent=with_users_sent)
