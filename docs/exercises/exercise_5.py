# Databricks notebook source
# MAGIC %md
# MAGIC # Exercise 5: sessions
# MAGIC
# MAGIC A session of a user ends when nothing has come for half an hour. It is written when the watermark has passed that end.

# COMMAND ----------

from headwater.testing import local_session

spark = local_session()

# COMMAND ----------

from exercise_data import *  # %run ./exercise_data.py

# COMMAND ----------

from pyspark.sql import functions as F

from headwater import pipelines as dp

# COMMAND ----------


@dp.table
def user_sessions():
    events = spark.readStream.table("raw.events")
    # ANSWER: user_id, session_start, session_end (the newest event), duration_minutes, page_views (events of the kind
    # view), pages (different ones); a session ends after 30 minutes; events are up to an hour late
    sessions = events.withWatermark("event_timestamp", "1 hour").groupBy(
        "user_id", F.session_window("event_timestamp", "30 minutes")
    )
    measured = sessions.agg(
        F.min("event_timestamp").alias("session_start"),
        F.max("event_timestamp").alias("session_end"),
        F.count_if(F.col("event_type") == "view").alias("page_views"),
        F.size(F.collect_set("page")).alias("pages"),
    )
    duration = F.timestamp_diff("MINUTE", F.col("session_start"), F.col("session_end"))
    return measured.withColumn("duration_minutes", duration).drop("session_window")
    # END


# COMMAND ----------

if __name__ == "__main__":
    from headwater_exercises import Workbench, check

    bench = Workbench(globals().get("__file__", "exercise_5.ipynb"))
    first = [event(1, 0, page="home"), event(2, 20, page="shoes"), event(3, 20, "u2", page="home")]
    second = [event(4, 45, kind="click", page="shoes"), event(5, 90, page="home"), event(6, 300, "u9")]
    for rows in (first, second):
        bench.append("raw.events", rows, EVENT)
        bench.update()
    for session in bench.rows("user_sessions"):
        print(session)
    check(5, bench)
