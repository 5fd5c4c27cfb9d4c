# Databricks notebook source
# MAGIC %md
# MAGIC # Exercise 1: a first streaming table
# MAGIC
# MAGIC A streaming table reads from a Delta table what is new in it, keeps some rows and some columns, and remembers how far it is.

# COMMAND ----------

from headwater.testing import local_session

spark = local_session()

# COMMAND ----------

from exercise_data import *  # %run ./exercise_data.py

# COMMAND ----------

from headwater import pipelines as dp

# COMMAND ----------


@dp.table
def clicks():
    # ANSWER: the clicks of raw.events, with event_id, user_id and event_timestamp
    events = spark.readStream.table("raw.events")
    return events.filter("event_type = 'click'").select("event_id", "user_id", "event_timestamp")
    # END


# COMMAND ----------

if __name__ == "__main__":
    from headwater_exercises import Workbench, check

    bench = Workbench(globals().get("__file__", "exercise_1.ipynb"))
    bench.append("raw.events", [event(1, 0, kind="click"), event(2, 1), event(3, 2, kind="click")], EVENT)
    bench.update()
    bench.append("raw.events", [event(4, 3, kind="click"), event(5, 4)], EVENT)
    bench.update()
    bench.update()  # nothing is new: no batch
    print("rows:", bench.rows("clicks"))
    print("checkpoint:", sorted(path.name for path in bench.checkpoint("clicks").iterdir()))
    for batch in sorted((bench.checkpoint("clicks") / "offsets").glob("[0-9]*")):
        print("offsets of batch", batch.name, batch.read_text().split("\n")[-1])
    check(1, bench)
