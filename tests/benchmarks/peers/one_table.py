"""One table of the medallion as one writes it by hand: a program for each, started one after another."""

import sys

from pyspark.sql import functions as F

SCHEMAS = {
    "orders_raw": "id LONG, customer LONG, product LONG, amount DOUBLE",
    "customers_raw": "id LONG, name STRING, country STRING",
    "clicks_raw": "id LONG, customer LONG, page STRING",
}
ORDER = [*SCHEMAS, "orders", "customers", "clicks", "large_orders", "sales_by_country", "pages", "products"]


def main(spark, landing, root, table):
    """Bring one table up to date."""

    def stream(name):
        return spark.readStream.format("delta").load(f"{root}/tables/{name}")

    def read(name):
        return spark.read.format("delta").load(f"{root}/tables/{name}")

    if table in SCHEMAS:
        rows = spark.readStream.schema(SCHEMAS[table]).json(f"{landing}/{table.removesuffix('_raw')}")
    elif table == "orders":
        rows = stream("orders_raw").where("amount > 0")
    elif table == "customers":
        rows = stream("customers_raw").withColumn("country", F.upper("country"))
    elif table == "clicks":
        rows = stream("clicks_raw").where("page is not null")
    elif table == "large_orders":
        rows = stream("orders").where("amount > 100")
    elif table == "sales_by_country":
        joined = read("orders").join(read("customers").withColumnRenamed("id", "customer"), "customer")
        rows = joined.groupBy("country").agg(
            F.count("*").alias("orders"), F.round(F.sum("amount"), 2).alias("amount")
        )
    elif table == "pages":
        rows = read("clicks").groupBy("page").agg(F.count("*").alias("clicks"))
    else:
        rows = read("large_orders").groupBy("product").agg(F.count("*").alias("orders"))

    if rows.isStreaming:
        query = (
            rows.writeStream.format("delta")
            .option("checkpointLocation", f"{root}/checkpoints/{table}")
            .trigger(availableNow=True)
            .start(f"{root}/tables/{table}")
        )
        query.awaitTermination()
    else:
        rows.write.format("delta").mode("overwrite").save(f"{root}/tables/{table}")


if __name__ == "__main__":
    from spark import documented, session

    plain = sys.argv.pop(1) == "documented"
    spark = documented() if plain else session()
    main(spark, *sys.argv[1:])
    spark.stop()
