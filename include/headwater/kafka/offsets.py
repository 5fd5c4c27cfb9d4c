"""Metadata of Kafka topics: an interface, and the client that implements it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from headwater.errors import SourceUnreachable
from headwater.kafka.topic_pattern import topic_pattern

TIMEOUT_SECONDS = 5.0
# So many messages of a partition say how large its messages are: no more than came with the first one.
_SIZED = 20
Partition = tuple[str, int]


@dataclass(frozen=True)
class FirstMessages:
    """The first messages from a position on. ``written_at``: of the very first, seconds since 1970; None where it is not known.

    ``mean_bytes``: of key and value, over those that were looked at.
    """

    written_at: float | None
    mean_bytes: float


class TopicReader(Protocol):
    """The three queries that lag needs."""

    def partitions(self, options: Mapping[str, str]) -> list[Partition]:
        """The partitions that a subscription (``subscribe``, ``subscribePattern``, ``assign``) means now."""

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that is kept, and the one that comes next."""

    def first_messages(self, positions: Mapping[Partition, int]) -> dict[Partition, FirstMessages]:
        """What the messages at each position are like; partitions without an answer are left out."""


Connect = Callable[[str], AbstractContextManager[TopicReader]]


class BrokerTopics:
    """A ``TopicReader`` over a real broker; every query has a timeout, after which it raises SourceUnreachable.

    ``login``: settings of the client by which it logs in.
    """

    def __init__(
        self, servers: str, *, login: Mapping[str, str] | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._servers = servers
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._consumer = open_consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "headwater-lag",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
                "auto.offset.reset": "earliest",
                "socket.timeout.ms": int(timeout * 1000),
                "log_level": 0,
                **(login or {}),
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def partitions(self, options: Mapping[str, str]) -> list[Partition]:
        """See TopicReader; raises SourceUnreachable where a named topic does not exist."""
        if "assign" in options:
            chosen = json.loads(options["assign"])
            return [(topic, int(number)) for topic, numbers in sorted(chosen.items()) for number in numbers]
        topics = self._ask(lambda: self._consumer.list_topics(timeout=self._left())).topics
        if "subscribePattern" in options:
            pattern = topic_pattern(options["subscribePattern"])
            names = sorted(name for name in topics if pattern.fullmatch(name))
        else:
            names = [name.strip() for name in options.get("subscribe", "").split(",") if name.strip()]
        missing = [name for name in names if name not in topics or topics[name].error is not None]
        if missing or not names:
            shown = ", ".join(missing) or options.get("subscribePattern", "")
            raise SourceUnreachable(f"Kafka at {self._servers} has no topic {shown}.")
        return [(name, number) for name in names for number in sorted(topics[name].partitions)]

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """See TopicReader."""
        from confluent_kafka import TopicPartition

        watermarks = self._ask(
            lambda: self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=self._left())
        )
        if watermarks is None:
            raise SourceUnreachable(f"Kafka at {self._servers} did not answer within {self._timeout:g} s.")
        return int(watermarks[0]), int(watermarks[1])

    def first_messages(self, positions: Mapping[Partition, int]) -> dict[Partition, FirstMessages]:
        """See TopicReader; waits for half of the timeout at most."""
        from confluent_kafka import TopicPartition

        partitions = [TopicPartition(*place, offset) for place, offset in positions.items()]
        self._ask(lambda: self._consumer.assign(partitions))
        times: dict[Partition, float | None] = {}
        sizes: dict[Partition, list[int]] = {}
        deadline = time.monotonic() + self._timeout / 2
        while (left := deadline - time.monotonic()) > 0:
            # The broker answers with many messages at once: those that have come are looked at, and no others waited for.
            message = self._consumer.poll(left if len(times) < len(positions) else 0)
            if message is None and len(times) == len(positions):
                break
            if message is None or message.error() is not None:
                continue
            place = (str(message.topic()), int(message.partition() or 0))
            times.setdefault(place, _written_at(message))
            sizes.setdefault(place, []).append(len(message.key() or b"") + len(message.value() or b""))
            if len(sizes[place]) == _SIZED:
                # The rest of the partition need not come over the wire.
                self._ask(partial(self._consumer.incremental_unassign, [TopicPartition(*place)]))
        return {
            place: FirstMessages(at, sum(sizes[place]) / len(sizes[place])) for place, at in times.items()
        }

    def _left(self) -> float:
        return max(0.1, self._deadline - time.monotonic())

    def _ask(self, question: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return question()
        except KafkaException as error:
            raise broker_failed(self._servers, error) from None


def _written_at(message: Any) -> float | None:
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    kind, millis = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else float(millis) / 1000


def open_consumer(settings: Mapping[str, Any]) -> Any:
    """A client of the broker; no request is sent yet.

    Raises:
        SourceUnreachable: where a setting can't be honoured: a file of certificates that is not there, an unknown mechanism.
    """
    from confluent_kafka import Consumer, KafkaException

    try:
        return Consumer(dict(settings))
    except KafkaException as error:
        servers = settings["bootstrap.servers"]
        raise SourceUnreachable(
            f"No client for Kafka at {servers} can be made with its settings: {_said(error)}.",
            remedy="Check brokers in pipeline.yml, and that the files that it names are on this machine.",
        ) from None


def broker_failed(servers: str, error: Exception) -> SourceUnreachable:
    """The error for a broker that failed to answer."""
    return SourceUnreachable(
        f"Kafka at {servers} could not be queried: {_said(error)}.",
        remedy="Check that the broker runs and that the address is right.",
    )


def _said(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return str(cause.str() if hasattr(cause, "str") else cause).rstrip(".")
