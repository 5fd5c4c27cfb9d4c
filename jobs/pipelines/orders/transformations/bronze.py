"""Bronze: what arrived, as it arrived. Nothing is parsed that could fail, and nothing is thrown away."""

from pyspark.sql import functions as F

from headwater import pipelines as dp

LANDING = spark.conf.get("landing")

CLICK = "click_id STRING, customer_id STRING, product STRING, clicked_at TIMESTAMP, unreadable STRING"
CUSTOMER = "customer_id STRING, name STRING, email STRING, country STRING, updated_at TIMESTAMP"


@dp.table(comment="Every order message as it came through Kafka, the malformed ones too")
def orders_bronze():
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", spark.conf.get("kafka_servers"))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
        .select(
            F.col("value").cast("string").alias("message"),
            F.col("timestamp").alias("arrived_at"),
            "partition",
            "offset",
        )
    )


dp.create_streaming_table(
    "clicks_bronze", comment="Clicks in the web shop and in the app; one table, two flows"
)


@dp.append_flow(target="clicks_bronze")
def web_clicks():
    return clicks_of("web")


@dp.append_flow(target="clicks_bronze")
def app_clicks():
    return clicks_of("app")


def clicks_of(channel):
    """A line that is not JSON becomes a row with the line in `unreadable`."""
    return (
        spark.readStream.format("json")
        .schema(CLICK)
        .option("columnNameOfCorruptRecord", "unreadable")
        .load(f"{LANDING}/clicks/{channel}")
        .withColumn("channel", F.lit(channel))
    )


@dp.table(comment="Every version of every customer that the shop has sent us")
@dp.expect_or_drop("has_id", "customer_id IS NOT NULL")
def customers_bronze():
    return spark.readStream.format("csv").schema(CUSTOMER).option("header", True).load(f"{LANDING}/customers")
