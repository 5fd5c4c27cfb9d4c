"""What a Kafka broker says of topics, for the checks before a flow starts: who they are, and what they still have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import SourceUnreachable
from headwater.metrics.kafka_offsets import BrokerTopics, Partition

_TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True)
class BrokerFacts:
    """Answers of the broker at ``servers``; empty where it can't be asked (that is for others to tell).

    ``login``: gives the settings of the client by which it logs in.
    """

    servers: str
    login: Callable[[], Mapping[str, str]] = dict

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """The id that the broker gave each topic when it was made; old brokers give none."""
        from confluent_kafka import KafkaException, TopicCollection
        from confluent_kafka.admin import AdminClient

        try:
            admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0, **self.login()})
            asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=_TIMEOUT_SECONDS)
        except (KafkaException, SourceUnreachable, ValueError):
            return {}
        return {name: found for name, answer in asked.items() if (found := _id(answer)) is not None}

    def bounds(self, places: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        """The first kept and the next offset of each partition that is there."""
        found: dict[Partition, tuple[int, int]] = {}
        try:
            login = self.login()
        except SourceUnreachable:
            return found
        with BrokerTopics(self.servers, login=login, timeout=_TIMEOUT_SECONDS) as topics:
            for place in places:
                try:
                    found[place] = topics.bounds(place)
                except SourceUnreachable:
                    continue
        return found


def _id(answer: Any) -> str | None:
    from confluent_kafka import KafkaException

    try:
        identity = answer.result(timeout=_TIMEOUT_SECONDS + 1).topic_id
    except (KafkaException, TimeoutError):
        return None
    return str(identity) if identity is not None else None
