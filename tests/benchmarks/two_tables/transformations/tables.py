from headwater import pipelines as dp


@dp.table
def t1():
    schema = "id LONG, customer STRING, amount DOUBLE"
    return spark.readStream.format("json").schema(schema).load(spark.conf.get("landing"))


@dp.table
def t2():
    return spark.readStream.table("t1").where("amount > 0")
