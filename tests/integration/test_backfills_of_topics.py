"""Backfills by offset, and a topic's history as one batch, on a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from tests.integration.test_a_range_is_filled_again import ran, refused

from headwater_demo.kafka_broker import KafkaBroker

TOPIC = """
@dp.table
def {name}():
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "{topic}")
    return read{options}.load().select(F.col("value").cast("string").cast("int").alias("n"), "partition", "offset")
"""


@pytest.fixture
def broker(shared_broker: KafkaBroker) -> KafkaBroker:
    """A running broker with two topics of two partitions."""
    for topic in ("late", "whole"):
        shared_broker.create_topic(topic, partitions=2)
    return shared_broker


def send(broker: KafkaBroker, topic: str, *numbers: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number in numbers:
        producer.produce(topic, value=str(number).encode(), partition=number % 2)
    assert producer.flush(20) == 0


def numbers(case: Any, table: str) -> list[int]:
    return [n for (n,) in case.rows(table, "n", "1")]


def test_messages_from_before_the_stream_are_added_and_history_is_one_batch(pipeline, broker: KafkaBroker):
    """Offsets before the stream's first are appended once; a new table takes all of its topic, then what comes."""
    late = '.option("startingOffsets", "latest")'
    servers = broker.bootstrap_servers
    case = pipeline(
        TOPIC.format(name="late", topic="late", servers=servers, options=late)
        + TOPIC.format(name="whole", topic="whole", servers=servers, options="")
    )
    send(broker, "late", 0, 1, 2, 3)
    send(broker, "whole", *range(10))
    # The first update only notes where the topic ends; the second has something to read.
    assert case.update(tables=("late",)).state == "COMPLETED"
    send(broker, "late", 4, 5)
    assert case.update(tables=("late",)).state == "COMPLETED"
    before = len(numbers(case, "late"))
    by_offset = ("--tables", "late", "--range", "offset", "--from")
    assert (
        refused(case, *by_offset, '{"late": {"0": 0}}', "--to", '{"late": {"0": 9}}') == "RANGE_NOT_READ_YET"
    )
    assert (
        refused(case, *by_offset, '{"late": {"0": 0}}', "--to", '{"late": {"0": 3}}')
        == "RANGE_ALREADY_WRITTEN"
    )
    code, done = ran(case, *by_offset, '{"late": {"0": 1, "1": 0}}', "--to", '{"late": {"0": 2, "1": 2}}')
    assert (code, done["flows"][0]["output_rows"]) == (0, 3), done
    assert (before, numbers(case, "late")) == (2, [1, 2, 3, 4, 5])

    code, done = ran(case, "--tables", "whole", "--then-stream")
    assert code == 0, done
    assert done["history"][0]["rows"] == 10
    send(broker, "whole", 10, 11)
    assert case.update(tables=("whole",)).state == "COMPLETED"
    assert numbers(case, "whole") == list(range(12))
