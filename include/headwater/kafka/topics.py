"""What a Kafka broker says of topics, for the checks before a flow starts: who they are, and what they still have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.errors import SourceUnreachable
from headwater.kafka.offsets import BrokerTopics, Partition

# A start must not be held up by a broker that asks for a login we have not got.
_TIMEOUT_SECONDS = 2.0
_UNKNOWN = ""


class BrokerFacts:
    """Answers of a broker; empty where it can't be asked (that is for others to tell), and then not asked again.

    Args:
        servers: the broker's addresses.
        login: gives the settings of the client by which it logs in.
    """

    def __init__(self, servers: str, login: Callable[[], Mapping[str, str]] = dict) -> None:
        self._servers = servers
        self._login = login
        self._silent = False

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """The id that the broker gave each topic when it was made; old brokers give none."""
        return {name: identity for name, identity in self._described(names).items() if identity}

    def gone(self, names: Sequence[str]) -> list[str]:
        """Those topics that the broker says it has none of."""
        return [name for name, identity in self._described(names).items() if identity == _UNKNOWN]

    def _described(self, names: Sequence[str]) -> dict[str, str | None]:
        from confluent_kafka import KafkaException, TopicCollection
        from confluent_kafka.admin import AdminClient

        if self._silent:
            return {}
        begun = time.monotonic()
        try:
            admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 0, **self._login()})
            asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=_TIMEOUT_SECONDS)
            found = {name: _id(answer) for name, answer in asked.items()}
        except (KafkaException, SourceUnreachable, ValueError):
            self._silent = True
            return {}
        self._silent = not any(found.values()) and time.monotonic() - begun >= _TIMEOUT_SECONDS
        return found

    def bounds(self, places: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        """The first kept and the next offset of each partition that is there."""
        found: dict[Partition, tuple[int, int]] = {}
        if self._silent:
            return found
        ends = time.monotonic() + _TIMEOUT_SECONDS
        try:
            opened = BrokerTopics(self._servers, login=self._login(), timeout=_TIMEOUT_SECONDS)
        except SourceUnreachable:
            return found
        with opened as topics:
            for place in places:
                try:
                    found[place] = topics.bounds(place)
                except SourceUnreachable:
                    # A partition that is gone is told at once; a broker that is silent takes all the time.
                    if time.monotonic() >= ends:
                        self._silent = True
                        break
        return found


def _id(answer: Any) -> str | None:
    """The id, ``_UNKNOWN`` where there is no such topic, None where nothing is known."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        identity = answer.result(timeout=_TIMEOUT_SECONDS + 1).topic_id
    except KafkaException as error:
        code = error.args[0].code() if error.args and isinstance(error.args[0], KafkaError) else None
        return _UNKNOWN if code == KafkaError.UNKNOWN_TOPIC_OR_PART else None
    except TimeoutError:
        return None
    return str(identity) if identity is not None else None
