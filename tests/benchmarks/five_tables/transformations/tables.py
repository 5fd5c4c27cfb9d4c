from pyspark.sql import functions as F

from headwater import pipelines as dp


@dp.table
def t1():
    schema = "id LONG, customer STRING, amount DOUBLE"
    return spark.readStream.format("json").schema(schema).load(spark.conf.get("landing"))


@dp.table
def t2():
    return spark.readStream.table("t1").where("amount > 0")


@dp.table
def t3():
    return spark.readStream.table("t2").withColumn("cents", F.round(F.col("amount") * 100).cast("long"))


@dp.table
def t4():
    return spark.readStream.table("t2").select("id", F.upper("customer").alias("customer"))


@dp.table
def t5():
    return spark.readStream.table("t3").where("cents > 5000")
