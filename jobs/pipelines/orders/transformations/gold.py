"""Gold: the answers that people ask for. Always what the same query over all data would give."""

from pyspark.sql import functions as F

from headwater import pipelines as dp


@dp.materialized_view(comment="What was sold, by day and country")
def revenue_by_day_and_country():
    return (
        dp.read("orders_enriched")
        .groupBy(
            F.to_date("ordered_at").alias("day"), F.coalesce("country", F.lit("unknown")).alias("country")
        )
        .agg(
            F.count("*").alias("orders"),
            F.countDistinct("customer_id").alias("customers"),
            F.sum("amount").alias("revenue"),
        )
    )


@dp.materialized_view(comment="How each product sells, and how many clicks that takes")
def top_products():
    sales = (
        dp.read("orders_enriched")
        .groupBy("product")
        .agg(F.count("*").alias("orders"), F.sum("amount").alias("revenue"))
    )
    interest = dp.read("clicks").groupBy("product").agg(F.count("*").alias("clicks"))
    return sales.join(interest, "product", "left").withColumn("orders_per_click", F.expr("orders / clicks"))
