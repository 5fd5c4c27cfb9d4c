"""Silver: parsed, checked, each order once, with the customer's country beside it."""

from pyspark.sql import functions as F

from headwater import pipelines as dp

ORDER = """
    order_id STRING, customer_id STRING, product STRING,
    quantity INT, price DECIMAL(10, 2), ordered_at TIMESTAMP
"""


@dp.table(comment="Orders as columns; what can't be read or can't be true is dropped, and counted")
@dp.expect_all_or_drop(
    {
        "readable": "order_id IS NOT NULL AND customer_id IS NOT NULL AND ordered_at IS NOT NULL",
        "something_bought": "quantity IS NOT NULL AND quantity > 0",
        "sensible_price": "price IS NOT NULL AND price > 0",
    }
)
def orders_silver():
    # from_json gives NULLs for a message that is not JSON: the rules above see them, and the stream goes on.
    return (
        dp.read_stream("orders_bronze")
        .select(F.from_json("message", ORDER).alias("o"), "arrived_at")
        .select("o.*", "arrived_at")
    )


@dp.materialized_view(comment="The latest version of each customer")
def customers():
    return (
        dp.read("customers_bronze")
        .groupBy("customer_id")
        .agg(F.max_by(F.struct("name", "email", "country"), "updated_at").alias("latest"))
        .select("customer_id", "latest.*")
    )


@dp.temporary_view(comment="Clicks that could be read; not stored, whoever reads it gets the query")
def clicks():
    return dp.read("clicks_bronze").where("unreadable IS NULL AND click_id IS NOT NULL")


@dp.table(comment="Each order once, with its amount and its customer's country")
@dp.expect("known_customer", "country IS NOT NULL")
def orders_enriched():
    # Senders repeat a message within minutes; orders may be hours late. A day covers both.
    orders = (
        dp.read_stream("orders_silver")
        .withWatermark("ordered_at", "1 day")
        .dropDuplicatesWithinWatermark(["order_id"])
    )
    countries = dp.read("customers").select("customer_id", "country")
    return orders.join(countries, "customer_id", "left").withColumn("amount", F.expr("quantity * price"))
