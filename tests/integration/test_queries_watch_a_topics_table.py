"""The queries with which people watch a table of Kafka's messages: how fresh it is, and whether an offset is missing."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from headwater.metrics.event_freshness import table_event_freshness

SOURCE = """
@dp.table
def user_events():
    messages = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
        .option("subscribe", "watched").option("startingOffsets", "earliest").load()
    )
    return messages.select(
        F.col("value").cast("string").alias("body"), F.col("timestamp").alias("event_timestamp"),
        F.col("partition").alias("kafka_partition"), F.col("offset").alias("kafka_offset"),
        F.current_timestamp().alias("ingestion_timestamp"), F.current_date().alias("dt"),
    )

@dp.materialized_view
def freshness():
    return spark.sql(\"\"\"
        SELECT MAX(event_timestamp) AS latest_event, MAX(ingestion_timestamp) AS latest_ingestion,
               TIMESTAMPDIFF(SECOND, MAX(event_timestamp), current_timestamp()) AS lag_seconds
        FROM user_events\"\"\")

@dp.materialized_view
def today():
    return spark.sql(\"\"\"
        SELECT COUNT(*) AS total_events, MAX(kafka_offset) AS max_offset, COUNT(DISTINCT kafka_partition) AS partition_count
        FROM user_events WHERE dt = current_date()\"\"\")

@dp.materialized_view
@dp.expect("no_gap", "total_events = last - first + 1")
def offsets():
    return dp.read("user_events").groupBy("kafka_partition").agg(
        F.count("*").alias("total_events"), F.min("kafka_offset").alias("first"), F.max("kafka_offset").alias("last"))
"""
HOUR_MS = 3_600_000


def gaps(case: Any) -> list[int]:
    """In how many partitions an offset was missing, by update."""
    offsets = [
        event["details"]["flow_progress"] for event in case.events(flow="offsets", event_type="flow_progress")
    ]
    return [
        part["data_quality"]["expectations"][0]["failed_records"]
        for part in offsets
        if "data_quality" in part
    ]


@pytest.mark.timeout(200)
def test_freshness_and_missing_offsets(pipeline, shared_broker):
    """The age of the newest message and the counts by partition are right; a message that is lost later is found."""
    shared_broker.create_topic("watched", partitions=2)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 0})
    newest = int(time.time() * 1000) - HOUR_MS
    for number in range(7):
        producer.produce("watched", b"%d" % number, partition=number % 2, timestamp=newest - number * 1000)
    assert producer.flush(20) == 0
    case = pipeline(SOURCE.format(servers=shared_broker.bootstrap_servers))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    ((latest, ingested, lag),) = case.rows("freshness")
    assert latest.timestamp() == newest / 1000
    assert 3600 <= lag <= time.time() - newest / 1000
    assert ingested.timestamp() > time.time() - 200
    # The limit by events, `event_freshness`, sees what the query sees, without running it (features A132).
    seen = table_event_freshness(case.table("user_events"), "user_events", "event_timestamp")
    assert seen.newest == pytest.approx(latest.timestamp(), abs=0.01)
    assert seen.seconds == pytest.approx(lag, abs=200)
    assert case.rows("today") == [(7, 3, 2)]
    assert case.rows("offsets", "*", "1") == [(0, 4, 0, 3), (1, 3, 0, 2)]

    DeltaTable(str(case.table("user_events"))).delete("kafka_partition = 0 and kafka_offset = 2")
    assert case.update(tables=["offsets"]).state == "COMPLETED"
    assert case.rows("offsets", "*", "1") == [(0, 3, 0, 3), (1, 3, 0, 2)]
    assert gaps(case) == [0, 1]
