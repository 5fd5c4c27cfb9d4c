# Databricks notebook source
# MAGIC %md
# MAGIC # Exercise 4: duplicates
# MAGIC
# MAGIC Events are sent again, some at once and some later. `dropDuplicates` keeps every id that it has seen, for ever;
# MAGIC `dropDuplicatesWithinWatermark` forgets an id when the watermark has passed it.

# COMMAND ----------

from headwater.testing import local_session

spark = local_session()

# COMMAND ----------

from exercise_data import *  # %run ./exercise_data.py

# COMMAND ----------


from headwater import pipelines as dp

# COMMAND ----------


@dp.table
def kept_for_ever():
    events = spark.readStream.option("maxFilesPerTrigger", 1).table("raw.events")
    # ANSWER: each event_id once, whenever it comes again
    return events.dropDuplicates(["event_id"])
    # END


@dp.table
def forgotten_in_time():
    events = spark.readStream.option("maxFilesPerTrigger", 1).table("raw.events")
    # ANSWER: each event_id once, where it comes again within an hour
    return events.withWatermark("event_timestamp", "1 hour").dropDuplicatesWithinWatermark(["event_id"])
    # END


# COMMAND ----------

if __name__ == "__main__":
    from headwater_exercises import Workbench, check

    bench = Workbench(globals().get("__file__", "exercise_4.ipynb"))
    # Five files, an hour apart: ten events, three of them twice in the file, two of the file before again.
    for hour in range(5):
        new = [event(10 * hour + n, 60 * hour + n) for n in range(10)]
        again = [event(10 * (hour - 1) + n, 60 * (hour - 1) + n) for n in range(8, 10)] if hour else []
        bench.append("raw.events", new + new[:3] + again, EVENT)
    bench.update()
    for name in ("kept_for_ever", "forgotten_in_time"):
        batches = bench.batches(name)
        read = sum(batch.rows for batch in batches)
        removed = read - len(bench.rows(name))
        print(f"{name}: {removed} of {read} rows removed, state {[batch.state_rows for batch in batches]}")
    check(4, bench)
