"""Lag behind Kafka, against a broker of few words."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from headwater.errors import SourceUnreachable
from headwater.kafka.offsets import BrokerTopics, FirstMessages
from headwater.metrics.kafka_backlog import kafka_backlog

OPTIONS = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "ev"}


class FakeTopics:
    """Answers from a table of bounds; messages are 30 s old."""

    def __init__(self, bounds):
        self.known = bounds
        self.lookups = []

    def __call__(self, servers):
        self.servers = servers
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def partitions(self, options):
        if not self.known:
            raise SourceUnreachable("Kafka has no topic ev.")
        return sorted(self.known)

    def bounds(self, partition):
        return self.known[partition]

    def first_messages(self, positions):
        self.lookups.append(dict(positions))
        sizes = {("ev", 0): 100.0, ("ev", 1): 20.0}
        return {place: FirstMessages(time.time() - 30, sizes[place]) for place in positions if place in sizes}


def test_behind():
    """Lag is what lies between the checkpoint and each partition's end, aged by its first message."""
    topics = FakeTopics({("ev", 0): (0, 100), ("ev", 1): (0, 50)})
    backlog = kafka_backlog(OPTIONS, {"ev": {"0": 90, "1": 50}}, topics)
    assert (backlog.records, backlog.moved) == (10, True)
    assert backlog.seconds is not None
    assert 29 < backlog.seconds < 40
    assert topics.lookups == [{("ev", 0): 90}]


def test_bytes_are_estimated_by_the_first_messages():
    """Each partition's unread messages have the mean size of those seen there; one that showed none has that of the others."""
    topics = FakeTopics({("ev", 0): (0, 100), ("ev", 1): (0, 50), ("ev", 2): (0, 7)})
    assert kafka_backlog(OPTIONS, {"ev": {"0": 90, "1": 45, "2": 0}}, topics).bytes == 1000 + 100 + 7 * 60
    assert kafka_backlog(OPTIONS, {"ev": {"0": 100, "1": 50, "2": 7}}, topics).bytes == 0
    silent = FakeTopics({("ev", 2): (0, 7)})
    backlog = kafka_backlog(OPTIONS, {"ev": {"2": 0}}, silent)
    assert (backlog.records, backlog.bytes, backlog.seconds) == (7, None, None)


@pytest.mark.parametrize(("low", "at", "records"), [(0, 99, 1), (0, 100, 0), (0, 101, None), (95, 90, 5)])
def test_where_a_partition_begins_and_ends(low, at, records):
    """Messages that retention has taken are none; a position behind the end is another topic's."""
    backlog = kafka_backlog(OPTIONS, {"ev": {"0": at}}, FakeTopics({("ev", 0): (low, 100)}))
    assert backlog.records == records
    assert backlog.moved is (records != 0)


def test_at_the_end():
    """At every end there is nothing, and no message is asked for."""
    topics = FakeTopics({("ev", 0): (0, 100)})
    backlog = kafka_backlog(OPTIONS, {"ev": {"0": 100}}, topics)
    assert (backlog.records, backlog.seconds, backlog.moved) == (0, 0.0, False)
    assert topics.lookups == []


def test_new_partition_counts_from_its_start():
    """A partition that the checkpoint does not know is read from its first kept message."""
    topics = FakeTopics({("ev", 0): (0, 100), ("ev", 1): (5, 25)})
    assert kafka_backlog(OPTIONS, {"ev": {"0": 100}}, topics).records == 20


def test_before_the_first_run():
    """What a first run will read is decided by the starting offsets; Spark's default is the end."""
    topics = FakeTopics({("ev", 0): (10, 100), ("ev", 1): (0, 50)})
    assert kafka_backlog({**OPTIONS, "startingOffsets": "earliest"}, None, topics).records == 140
    latest = kafka_backlog(OPTIONS, None, topics)
    assert (latest.records, latest.moved) == (0, None)
    chosen = {**OPTIONS, "startingOffsets": '{"ev":{"0":-2,"1":20}}'}
    assert kafka_backlog(chosen, None, topics).records == 120


def test_expired_messages_are_not_counted():
    """Messages that the broker has thrown away are no backlog, what is left is."""
    topics = FakeTopics({("ev", 0): (60, 100)})
    assert kafka_backlog(OPTIONS, {"ev": {"0": 10}}, topics).records == 40


def test_topic_made_anew():
    """An end before the checkpoint's offset is reported as a recreated topic, not as negative lag."""
    backlog = kafka_backlog(OPTIONS, {"ev": {"0": 90}}, FakeTopics({("ev", 0): (0, 3)}))
    assert (backlog.records, backlog.moved) == (None, True)
    assert "recreated" in (backlog.unknown or "")


def test_missing_topic_and_address():
    """What can't be asked is unknown with the reason, neither zero nor an exception."""
    assert "no topic" in (kafka_backlog(OPTIONS, None, FakeTopics({})).unknown or "")
    assert "where the Kafka broker is" in (kafka_backlog({"subscribe": "ev"}, None).unknown or "")


def test_broker_away_is_told_in_bounded_time():
    """A broker that does not answer costs a bounded wait and gives a reason."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    options = {**OPTIONS, "kafka.bootstrap.servers": f"127.0.0.1:{port}"}
    start = time.monotonic()
    backlog = kafka_backlog(options, None, lambda servers: BrokerTopics(servers, timeout=0.5))
    assert time.monotonic() - start < 5
    assert backlog.records is None
    assert "could not be queried" in (backlog.unknown or "")


def subscribed(options):
    """Ask the real client's code for partitions, over a list of topics that needs no broker."""
    topics = BrokerTopics("127.0.0.1:1")
    topic = lambda count: SimpleNamespace(error=None, partitions=dict.fromkeys(range(count)))  # noqa: E731
    answer = SimpleNamespace(topics={"ev_a": topic(2), "ev_b": topic(1), "other": topic(1)})
    close = topics._consumer.close
    topics._consumer = SimpleNamespace(list_topics=lambda timeout: answer, close=close)
    with topics:
        return topics.partitions(options)


def test_three_ways_to_subscribe():
    """A comma list, a pattern and an assignment each mean the partitions that Spark takes them for."""
    assert subscribed({"subscribe": "ev_b, other"}) == [("ev_b", 0), ("other", 0)]
    assert subscribed({"subscribePattern": "ev_.*"}) == [("ev_a", 0), ("ev_a", 1), ("ev_b", 0)]
    assert subscribed({"assign": '{"ev_a":[1]}'}) == [("ev_a", 1)]


class FewMessages:
    """A consumer that has some messages of two partitions, and then none."""

    def __init__(self, *messages):
        self.waiting = list(messages)
        self.asked = []
        self.left = []

    def assign(self, partitions):
        self.asked = [(one.topic, one.partition, one.offset) for one in partitions]

    def poll(self, timeout):
        return self.waiting.pop(0) if self.waiting else None

    def incremental_unassign(self, partitions):
        self.left += [one.partition for one in partitions]
        self.waiting = [one for one in self.waiting if one.partition() not in self.left]


def message(partition, value, written_ms=None):
    """A message as the client gives it; without a time where the broker has none."""
    from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

    kind = TIMESTAMP_NOT_AVAILABLE if written_ms is None else TIMESTAMP_CREATE_TIME
    return SimpleNamespace(
        error=lambda: None, topic=lambda: "ev", partition=lambda: partition, key=lambda: None, value=lambda: value,
        timestamp=lambda: (kind, written_ms or 0),
    )  # fmt: skip


def test_a_few_messages_are_looked_at():
    """The first one has the time, those that came with it the size, and a partition with many is given up after twenty."""
    topics = BrokerTopics("127.0.0.1:1")
    real = topics._consumer
    few = FewMessages(
        message(0, b"ab", 5000), message(0, b"abcd", 9000), message(1, None), *[message(0, b"abc", 9000)] * 40
    )
    topics._consumer = few
    first = topics.first_messages({("ev", 0): 7, ("ev", 1): 0})
    topics._consumer = real
    topics._consumer.close()
    assert few.asked == [("ev", 0, 7), ("ev", 1, 0)]
    assert first == {("ev", 0): FirstMessages(5.0, 3.0), ("ev", 1): FirstMessages(None, 0.0)}
    assert few.left == [0]
