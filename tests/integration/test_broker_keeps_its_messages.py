"""The broker of the local stack is a real one: what it acknowledged is there after a restart."""

import socket
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headwater.runtime.conditions import PortTaken
from headwater.runtime.java import java_environment
from headwater_demo.kafka_broker import KafkaBroker

MESSAGES = 500


def produce(broker: KafkaBroker) -> None:
    """Send some messages, all acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number in range(MESSAGES):
        producer.produce("orders", key=str(number), value=str(number))
    assert producer.flush(20) == 0


def count(broker: KafkaBroker) -> int:
    """Count the messages that the broker holds."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "count", "log_level": 0})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition("orders", part), timeout=10) for part in (0, 1)]
    finally:
        consumer.close()
    return sum(high - low for low, high in ends)


def test_it_listens_on_loopback_only(shared_broker: KafkaBroker):
    """Another machine can't reach it: every port it listens on is of the loopback address, the one with a login as well."""
    listening = [
        connection.laddr.ip.removeprefix("::ffff:")
        for connection in psutil.Process(shared_broker.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}
    assert len(listening) == 3


def test_a_taken_port_is_told(tmp_path: Path):
    """A port that something listens on is refused before anything is written."""
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(PortTaken, match="the Kafka broker"):
        KafkaBroker(tmp_path / "kafka", port=server.getsockname()[1]).start()
    assert not (tmp_path / "kafka").exists()


def test_on_java_from_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The broker runs on the packaged Java as well, and has every message after a restart. After a crash, see
    ``test_topics_that_changed_are_noticed``.
    """
    monkeypatch.setenv("HEADWATER_JAVA", "pypi")
    assert Path(java_environment()["JAVA_HOME"]).name == "java-shim"
    with KafkaBroker(tmp_path / "kafka") as running:
        running.create_topic("orders", partitions=2)
        produce(running)
        running.restart()
        assert count(running) == MESSAGES
