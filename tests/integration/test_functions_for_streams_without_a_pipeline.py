"""`headwater.streaming`: the functions that guides write by hand, over a real broker and real tables, without their traps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.pipeline_case import read_rows

import ingest_kafka_events as program
from headwater import streaming
from headwater.errors import UsageError
from headwater_demo.kafka_broker import KafkaBroker

NOW = {"availableNow": True}
EVENT = {
    "event_id": "e1",
    "user_id": "u1",
    "session_id": "s1",
    "event_type": "view",
    "event_timestamp": "2026-01-01T23:59:59Z",
    "platform": "web",
    "payload": "{}",
}
OF_THE_EVENT = list(EVENT)
RAISES = "if(id >= 0, raise_error('no'), id) AS id"
OF_KAFKA = ["kafka_timestamp", "kafka_partition", "kafka_offset", "kafka_topic"]


@pytest.fixture
def table(tmp_path: Path):
    """A table in a folder of the test's own."""
    return lambda name: f"delta.`{tmp_path / name}`"


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path):
    """The name of a table in the session's catalog."""
    spark.sql(f"CREATE SCHEMA streams LOCATION '{tmp_path / 'streams'}'")
    yield lambda name: f"streams.{name}"
    spark.sql("DROP SCHEMA streams CASCADE")


@pytest.mark.timeout(200)
def test_a_topic_is_ingested(spark: SparkSession, tmp_path: Path, table, shared_broker: KafkaBroker):
    """The columns of the guide; `latest` is for the first start; messages that are no event are kept with their reason."""
    location, topic = str(tmp_path / "checkpoint"), "ingested-by-hand"
    shared_broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 0})

    def send(*values: object) -> None:
        for value in values:
            producer.produce(topic, value if isinstance(value, str) else json.dumps(value))
        assert producer.flush(20) == 0

    arguments = [shared_broker.bootstrap_servers, topic, location, table("events"), "--available-now"]
    send({**EVENT, "event_id": "before"})
    assert program.main(arguments) == 0
    send(EVENT, "not json")
    assert program.main(arguments) == 0
    rows = spark.table(table("events"))
    assert rows.columns == [*OF_THE_EVENT, *OF_KAFKA, "ingestion_timestamp", "dt", "processing_date"]
    assert [(row.event_id, str(row.dt), row.kafka_offset) for row in rows.orderBy("kafka_offset").collect()] == [
        ("e1", "2026-01-01", 1), (None, "None", 2),
    ]  # fmt: skip
    assert DeltaTable.forName(spark, table("events")).detail().collect()[0].partitionColumns == ["dt"]

    streaming.ingest_kafka_events(
        spark, shared_broker.bootstrap_servers, topic, str(tmp_path / "second"), table("valid"),
        starting_offsets="earliest", dlq_table=table("dlq"), trigger=NOW,
    )  # fmt: skip
    assert sorted(row.event_id for row in spark.table(table("valid")).collect()) == ["before", "e1"]
    assert spark.table(table("valid")).columns == rows.columns
    (bad,) = spark.table(table("dlq")).collect()
    assert (bad.raw_value, bad.kafka_offset) == ("not json", 2)
    assert bad.error_reason == "Missing required fields: event_id, event_timestamp"


def test_invalid_rows_go_to_a_table_of_their_own(spark: SparkSession, tmp_path: Path, named):
    """Each row is in exactly one of both tables, also where the condition is NULL; a batch that comes again adds nothing; a new
    checkpoint reads all again.
    """
    source = named("source")
    events = spark.range(6).select(
        F.when(F.col("id") != 1, F.concat(F.lit("e"), "id")).alias("event_id"),
        F.when(F.col("id") != 2, F.timestamp_seconds("id")).alias("event_timestamp"),
        F.when(F.col("id") != 3, F.col("id") - 4).alias("amount"),
    )
    events.write.format("delta").saveAsTable(source)
    checkpoint = tmp_path / "checkpoint"

    def process(location: Path) -> list[int]:
        streaming.process_stream_with_dlq(
            spark.readStream.table(source), str(location), named("valid"), named("dlq"), valid="amount >= -4", trigger=NOW,
        )  # fmt: skip
        return [len(read_rows(tmp_path / "streams" / name)) for name in ("valid", "dlq")]

    assert process(checkpoint) == [3, 3]
    reasons = {row.error_reason for row in spark.table(named("dlq")).collect()}
    assert reasons == {
        "Missing required fields: event_id",
        "Missing required fields: event_timestamp",
        "Not met: amount >= -4",
    }
    # As after a driver that died before Spark had marked the batch as done.
    for mark in (checkpoint / "commits").glob("*0*"):
        mark.unlink()
    events.limit(1).write.format("delta").mode("append").saveAsTable(source)
    assert process(checkpoint) == [4, 3]
    assert len(list((checkpoint / "commits").glob("[0-9]*"))) == 2
    assert process(tmp_path / "another") == [8, 6]

    (tmp_path / "old" / "dlq" / "offsets").mkdir(parents=True)
    with pytest.raises(UsageError, match="those of other queries: dlq"):
        process(tmp_path / "old")


def test_changes_are_merged(spark: SparkSession, tmp_path: Path, named):
    """An unknown delete is no row, the newest event of a key counts in a batch and after it, a batch that comes again changes
    nothing; without an order two events of a key are refused, and so is a key that Delta stores as NULL in a partition.
    """
    target, changes = named("transactions"), named("changes")
    spark.sql(f"CREATE TABLE {target} (t_id INT, amount INT, at INT) USING delta")
    columns = "t_id INT, amount INT, at INT, operation STRING"
    upsert = streaming.upsert_changes(target, ["t_id"], sequence_by="at")
    checkpoint = tmp_path / "checkpoint"

    def merged(*events: tuple[int, int | None, int, str | None]) -> list[tuple[int, int, int]]:
        rows = spark.createDataFrame(list(events), columns)
        rows.write.format("delta").mode("append").saveAsTable(changes)
        stream = spark.readStream.table(changes).writeStream.foreachBatch(upsert).outputMode("update")
        stream.option("checkpointLocation", str(checkpoint)).trigger(**NOW).start().awaitTermination()
        return read_rows(tmp_path / "streams" / "transactions")

    first = merged((1, 10, 1, "INSERT"), (2, 20, 1, None), (9, None, 1, "DELETE"), (2, 21, 2, "UPDATE"))
    assert first == [(1, 10, 1), (2, 21, 2)]
    assert merged((1, 5, 0, "UPDATE"), (2, None, 1, "DELETE"), (3, 30, 1, "INSERT")) == [*first, (3, 30, 1)]
    for mark in (checkpoint / "commits").glob("*1*"):
        mark.unlink()
    assert merged((1, None, 3, "DELETE")) == [(2, 21, 2), (3, 30, 1)]
    assert len(list((checkpoint / "commits").glob("[0-9]*"))) == 3

    twice = spark.createDataFrame([(1, 1, 1, "INSERT"), (1, 2, 2, "INSERT")], columns)
    with pytest.raises(UsageError, match="2 events of t_id=1"):
        streaming.upsert_changes(target, ["t_id"])(twice, 0)

    by_text = named("by_text")
    spark.sql(f"CREATE TABLE {by_text} (City STRING, n INT) USING delta PARTITIONED BY (City)")
    upsert = streaming.upsert_changes(by_text, ["city"])
    for _ in range(2):
        upsert(
            spark.createDataFrame([(None, 1, "I"), ("a", 2, "I")], "city STRING, n INT, operation STRING"), 0
        )
    with pytest.raises(PySparkException, match="stores both as NULL"):
        upsert(spark.createDataFrame([("", 3, "I")], "city STRING, n INT, operation STRING"), 0)
    assert sorted(spark.table(by_text).collect(), key=str) == [("a", 2), (None, 1)]


def test_a_stream_is_started_again(spark: SparkSession, tmp_path: Path):
    """A real failure that can't pass is raised by the first attempt; a normal end is the end."""
    spark.range(1).write.format("delta").save(str(tmp_path / "source"))
    starts = []

    def start(expression: str):
        starts.append(expression)
        rows = spark.readStream.format("delta").load(str(tmp_path / "source")).selectExpr(expression)
        return rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).trigger(**NOW).start(str(tmp_path / "t"))  # fmt: skip

    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        streaming.start_streaming_with_retry(lambda: start(RAISES), sleep=starts.append)
    streaming.start_streaming_with_retry(lambda: start("id"), sleep=starts.append)
    assert starts == [RAISES, "id"]
