"""Whatever comes through Kafka, the stream goes on; a broker that is away is a reason to try again."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from tests.pipeline_case import PipelineCase

import replay_quarantine
from headwater.errors import SourceUnreachable
from headwater_demo.kafka_broker import KafkaBroker

SOURCE = """
def messages():
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "{servers}")
        .option("subscribe", "bad_orders")
        .option("startingOffsets", "earliest")
        .option("kafka.default.api.timeout.ms", "4000")
        .option("kafka.request.timeout.ms", "2000")
        .option("fetchOffset.numRetries", "1")
        .load()
    )

@dp.table
@dp.expect_or_drop("well_formed", "id IS NOT NULL")
def orders():
    order = F.from_json(F.col("value").cast("string"), "id INT, amount DOUBLE")
    return messages().select(order.alias("o"), "partition").select("o.*", "partition")

@dp.table
@dp.expect_or_quarantine("well_formed", "id IS NOT NULL")
def kept():
    order = F.from_json(F.col("value").cast("string"), "id INT, amount DOUBLE")
    return messages().select(order.alias("o")).select("o.*")

@dp.materialized_view
def total():
    return dp.read("orders").select(F.count("*").alias("n"), F.sum("amount").alias("amount"))

@dp.table
def files():
    return spark.readStream.schema("id INT").json(LANDING)
"""
BAD = [b"", b"{", b"no json", b"\xff\xfe\x00", b"null", b"[]", b'{"id": "x"}', b'{"amount": 1}', None]


def send(broker: KafkaBroker, *values: bytes | None) -> None:
    """Send messages in turn to both partitions, all acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce("bad_orders", value=value, partition=number % 2)
    assert producer.flush(20) == 0


def good(*numbers: int) -> list[bytes]:
    """Well-formed messages."""
    return [b'{"id": %d, "amount": 1.5}' % number for number in numbers]


def check_quarantine(case: PipelineCase, values: list[bytes | None]) -> None:
    """Each message is kept as it came, under its place in the topic, though the query selected it away."""
    quarantined = case.rows(
        "kept_quarantine",
        "_topic, _partition, _offset, _source_value, error_reason",
        "_offset * 2 + _partition",
    )
    assert [row[3] for row in quarantined] == values
    assert {(row[0], row[4]) for row in quarantined} == {("bad_orders", "well_formed")}
    # The first message was a good one.
    assert [row[1:3] for row in quarantined[:3]] == [(1, 0), (0, 1), (1, 1)]


def check_replay(case: PipelineCase, source: str) -> None:
    """Without a broker: a mended parser takes in what it can read of the kept messages, once; the others stay held."""
    read = 'F.from_json(F.col("value").cast("string")'
    mended = source.replace(
        read, """F.from_json(F.replace(F.col("value").cast("string"), F.lit('"x"'), F.lit("7"))"""
    )
    assert mended != source
    case.rewrite(mended)
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    for _ in range(2):  # the second finds nothing new
        assert replay_quarantine.main([str(case.folder), "kept", *roots]) == 0
        assert case.rows("kept", "id") == [(1,), (2,), (7,)]
    states = dict(case.rows("kept_quarantine", "_source_value, _status"))
    assert [value for value, status in states.items() if status == "replayed"] == [b'{"id": "x"}']
    assert list(states.values()).count("held") == len(states) - 1


@pytest.mark.timeout(200)
def test_malformed_messages_and_a_broker_that_goes_away(pipeline, shared_broker: KafkaBroker):
    """Malformed messages are dropped and counted; without a broker other branches are done, and what was kept is replayed; then it
    goes on exactly.
    """
    broker = shared_broker
    broker.create_topic("bad_orders", partitions=2)
    case = pipeline(SOURCE.format(servers=broker.bootstrap_servers))
    case.land([{"id": 1}])
    send(broker, *good(1), *BAD, *good(2))
    report = case.update()
    assert report.state == "COMPLETED"
    assert (report["orders"].input_rows, report["orders"].dropped_rows) == (2 + len(BAD), len(BAD))
    assert case.rows("orders", "id, amount") == [(1, 1.5), (2, 1.5)]
    check_quarantine(case, BAD)

    send(broker, *good(3), b"}", *good(4))
    broker.stop()
    try:
        check_without_a_broker(case)
        check_replay(case, SOURCE.format(servers=broker.bootstrap_servers))
    finally:
        broker.start()
    report = case.update()
    assert (report.state, report["orders"].input_rows, report["orders"].dropped_rows) == ("COMPLETED", 3, 1)
    assert case.rows("orders", "id") == [(1,), (2,), (3,), (4,)]
    assert case.rows("total") == [(4, 6.0)]
    assert case.rows("kept", "id") == [(1,), (2,), (3,), (4,), (7,)]
    check_quarantine(case, [*BAD, b"}"])
    assert case.update(tables=("orders", "kept"))["orders"].batches == 0


def check_without_a_broker(case: PipelineCase) -> None:
    """What reads its topic fails in a way that another try can help, what reads that is skipped, and another branch is done."""
    case.land([{"id": 2}])
    report = case.update()
    error = report["orders"].error
    assert report.statuses == {
        "orders": "FAILED",
        "kept": "FAILED",
        "total": "SKIPPED",
        "files": "COMPLETED",
    }
    assert isinstance(error, SourceUnreachable), error
    assert error.transient
    assert case.rows("orders", "id") == [(1,), (2,)]
    assert case.rows("files") == [(1,), (2,)]
