"""The medallion for Spark Declarative Pipelines; the format is not named, since a second run fails with it (Delta 4.4)."""

import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()
SCHEMAS = {
    "orders": "id LONG, customer LONG, product LONG, amount DOUBLE",
    "customers": "id LONG, name STRING, country STRING",
    "clicks": "id LONG, customer LONG, page STRING",
}


def bronze(name):
    @dp.table(name=f"{name}_raw")
    def table():
        return spark.readStream.schema(SCHEMAS[name]).json(f"{os.environ['LANDING']}/{name}")


for name in SCHEMAS:
    bronze(name)


@dp.table
def orders():
    return spark.readStream.table("orders_raw").where("amount > 0")


@dp.table
def customers():
    return spark.readStream.table("customers_raw").withColumn("country", F.upper("country"))


@dp.table
def clicks():
    return spark.readStream.table("clicks_raw").where("page is not null")


@dp.table
def large_orders():
    return spark.readStream.table("orders").where("amount > 100")


@dp.materialized_view
def sales_by_country():
    orders, customers = spark.read.table("orders"), spark.read.table("customers")
    joined = orders.join(customers.withColumnRenamed("id", "customer"), "customer")
    return joined.groupBy("country").agg(
        F.count("*").alias("orders"), F.round(F.sum("amount"), 2).alias("amount")
    )


@dp.materialized_view
def pages():
    return spark.read.table("clicks").groupBy("page").agg(F.count("*").alias("clicks"))


@dp.materialized_view
def products():
    return spark.read.table("large_orders").groupBy("product").agg(F.count("*").alias("orders"))
