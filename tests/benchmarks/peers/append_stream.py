"""A stream that is appended to a Delta table, as one writes it."""


def delta_rows(spark, folder, files_per_batch):
    """The rows of a Delta table that are worth something."""
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", files_per_batch).load(folder)
    return rows.where("amount > 0").selectExpr("id", "amount", "upper(country) as country")


def kafka_rows(spark, servers, topic, records_per_batch):
    """The values of a topic, and where they stood."""
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", records_per_batch)
        .load()
    )
    return rows.selectExpr("cast(value as string) as value", "partition", "offset", "timestamp")


def append(rows, root):
    """Append what is there now."""
    query = (
        rows.writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{root}/table")
    )
    query.awaitTermination()
