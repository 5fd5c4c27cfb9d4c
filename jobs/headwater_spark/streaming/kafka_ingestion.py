"""A topic of JSON events into a Delta table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from headwater_spark.streaming.batch_table import append_once
from headwater_spark.streaming.dead_letters import REQUIRED, SplitBatch, reason_of

EVENT_SCHEMA = StructType(
    [
        StructField("event_id", StringType()),
        StructField("user_id", StringType()),
        StructField("session_id", StringType()),
        StructField("event_type", StringType()),
        StructField("event_timestamp", TimestampType()),
        StructField("platform", StringType()),
        StructField("payload", StringType()),
    ]
)
_RAW = "raw_value"
_OF_KAFKA = ("kafka_timestamp", "kafka_partition", "kafka_offset", "kafka_topic")
_PARTITION = ("dt",)


def ingest_kafka_events(
    spark: SparkSession,
    kafka_servers: str,
    topic: str,
    checkpoint_location: str,
    target_table: str,
    *,
    starting_offsets: str = "latest",
    dlq_table: str | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> None:
    """Append the events of a topic to a Delta table partitioned by their day; returns when the stream ends.

    The columns are those of the event (``event_id``, ``user_id``, ``session_id``, ``event_type``, ``event_timestamp``, ``platform``,
    ``payload``), ``kafka_timestamp``, ``kafka_partition``, ``kafka_offset``, ``kafka_topic``, ``ingestion_timestamp``, ``dt`` and
    ``processing_date``.

    The traps of the form in guides: ``latest`` passes over what lies in the topic before the first start (afterwards the
    checkpoint counts); fields that the schema says are never NULL are NULL in a message that is no such JSON, without an
    error, and its text is gone; and ``.table`` is not open Spark's ``toTable``. Give ``dlq_table`` to keep those messages as they are.

    In a pipeline: ``@dp.table`` over ``spark.readStream.format("kafka")``.

    Args:
        spark: the session.
        kafka_servers: bootstrap servers, ``host:port``.
        topic: the topic to subscribe to.
        checkpoint_location: the folder of the query's checkpoint.
        target_table: the Delta table, by name or as ``delta.`/path` ``; it is made where there is none.
        starting_offsets: ``latest``, ``earliest`` or offsets as JSON, for the first start.
        dlq_table: a table for messages that are no JSON object or lack ``event_id`` or ``event_timestamp``: the message as text
            in ``raw_value``, the columns of Kafka, and ``error_reason``.
        trigger: the arguments of ``writeStream.trigger``; a batch every 30 seconds by default.

    Raises:
        StreamingQueryException: the stream failed.

    """
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka_servers)
        .option("subscribe", topic)
        .option("startingOffsets", starting_offsets)
        .option("maxOffsetsPerTrigger", "10000")
        .option("kafka.session.timeout.ms", "30000")
        .option("kafka.request.timeout.ms", "40000")
        .load()
    )
    writer = parsed_events(messages).writeStream.option("checkpointLocation", checkpoint_location)
    writer = writer.trigger(**(trigger or {"processingTime": "30 seconds"}))
    write: Callable[[DataFrame, int], None]
    if dlq_table is None:

        def write(batch_df: DataFrame, batch_id: int) -> None:
            append_once(batch_df.drop(_RAW), batch_id, target_table, _PARTITION)
    else:
        kept = (_RAW, *_OF_KAFKA, "ingestion_timestamp")
        write = SplitBatch(target_table, dlq_table, reason_of(REQUIRED, None), _PARTITION, (_RAW,), kept)
    writer.foreachBatch(write).start().awaitTermination()


def parsed_events(messages: DataFrame) -> DataFrame:
    """The columns of events from Kafka's messages, and the text of the message as ``raw_value``."""
    text = F.col("value").cast("string")
    return (
        messages.select(
            F.from_json(text, EVENT_SCHEMA).alias("event"),
            F.col("timestamp").alias("kafka_timestamp"),
            F.col("partition").alias("kafka_partition"),
            F.col("offset").alias("kafka_offset"),
            F.col("topic").alias("kafka_topic"),
            text.alias(_RAW),
        )
        .select("event.*", *_OF_KAFKA, _RAW)
        .withColumn("ingestion_timestamp", F.current_timestamp())
        .withColumn("dt", F.to_date("event_timestamp"))
        .withColumn("processing_date", F.current_date())
    )
