# Databricks notebook source
# MAGIC %md
# MAGIC # Exercise 2: watermarks
# MAGIC
# MAGIC A window is counted until the watermark has passed its end: the newest event time, less the delay. A longer delay waits for more
# MAGIC late events, and keeps more windows in the state. Which events are late is decided by the watermark of the batch before.

# COMMAND ----------

from headwater.testing import local_session

spark = local_session()

# COMMAND ----------

from exercise_data import *  # %run ./exercise_data.py

# COMMAND ----------

from pyspark.sql import functions as F

from headwater import pipelines as dp

DELAYS = [0, 60, 180]

# COMMAND ----------


def per_half_hour(delay):
    @dp.table(name=f"after_{delay}_minutes")
    def counts():
        events = spark.readStream.option("maxFilesPerTrigger", 1).table("raw.events")
        # ANSWER: how many events each half hour has, with a watermark of `delay` minutes: window_start, events
        timed = events.withWatermark("event_timestamp", f"{delay} minutes")
        windows = timed.groupBy(F.window("event_timestamp", "30 minutes").alias("w"))
        return windows.agg(F.count("*").alias("events")).select(
            F.col("w.start").alias("window_start"), "events"
        )
        # END


for delay in DELAYS:
    per_half_hour(delay)

# COMMAND ----------

if __name__ == "__main__":
    from headwater_exercises import Workbench, check

    bench = Workbench(globals().get("__file__", "exercise_2.ipynb"))
    # Five files, an hour apart; each has an event that is 170 minutes late, and one that is 230 minutes late.
    for hour in range(5):
        now = 60 * hour + 260
        bench.append("raw.events", [event(hour, minute) for minute in (now, now - 170, now - 230)], EVENT)
    bench.update()
    for delay in DELAYS:
        batches = bench.batches(f"after_{delay}_minutes")
        print(
            f"{delay:3} minutes: state {[batch.state_rows for batch in batches]}, late {[batch.late_rows for batch in batches]}"
        )
    check(2, bench)
