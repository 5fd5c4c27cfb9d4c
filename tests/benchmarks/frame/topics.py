"""A topic with many messages, for benchmarks that read Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from headwater_demo.kafka_broker import KafkaBroker


def fill_topic(broker: KafkaBroker, topic: str, values: Iterable[str], partitions: int = 2) -> None:
    """Make a topic and send it these values, one partition after another in turns."""
    from confluent_kafka import Producer

    broker.create_topic(topic, partitions)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value.encode(), partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
