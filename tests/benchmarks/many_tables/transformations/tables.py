from pyspark.sql import functions as F

from headwater import pipelines as dp


@dp.table
def t1():
    schema = "id LONG, customer STRING, amount DOUBLE"
    return spark.readStream.format("json").schema(schema).load(spark.conf.get("landing"))


def declare(number):
    @dp.table(name=f"t{number}")
    def table():
        above = spark.readStream.table(f"t{number // 2}").where("amount > 0")
        return above.withColumn(f"cents_{number}", F.round(F.col("amount") * 100).cast("long"))


for number in range(2, int(spark.conf.get("flows")) + 1):
    declare(number)
