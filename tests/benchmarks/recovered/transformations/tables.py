from headwater import pipelines as dp


@dp.table
def copied():
    source = spark.readStream.schema("id LONG, customer STRING").option("maxFilesPerTrigger", 1)
    return source.json(spark.conf.get("landing"))
