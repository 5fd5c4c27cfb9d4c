from pyspark.sql import functions as F

from headwater import pipelines as dp


@dp.table
def bronze():
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", spark.conf.get("servers"))
    rows = source.option("subscribe", spark.conf.get("topic")).option("startingOffsets", "earliest").load()
    return rows.selectExpr("cast(value as string) as value", "partition", "offset", "timestamp")


@dp.table
def silver():
    event = F.from_json("value", "id LONG, customer STRING, amount DOUBLE, sent DOUBLE")
    return spark.readStream.table("bronze").select(event.alias("event")).select("event.*").where("amount > 0")


@dp.table
def gold():
    return spark.readStream.table("silver").withColumn("cents", F.round(F.col("amount") * 100).cast("long"))
