"""Metadata of Kafka topics for the checks before a flow starts: their ids, and the offsets that they still have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.errors import SourceUnreachable
from headwater.kafka.offsets import BrokerTopics, Partition

# A start must not wait long for a broker that requires a login that is not configured.
_TIMEOUT_SECONDS = 2.0
_UNKNOWN = ""


class BrokerFacts:
    """Answers of a broker; empty where it does not answer (others report that), and then it is not queried again.

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
            futures = admin.describe_topics(TopicCollection(list(names)), request_timeout=_TIMEOUT_SECONDS)
            ids = {name: _id(answer) for name, answer in futures.items()}
        except (KafkaException, SourceUnreachable, ValueError):
            self._silent = True
            return {}
        self._silent = not any(ids.values()) and time.monotonic() - begun >= _TIMEOUT_SECONDS
        return ids

    def bounds(self, places: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        """The first kept and the next offset of each partition that is there."""
        bounds: dict[Partition, tuple[int, int]] = {}
        if self._silent:
            return bounds
        ends = time.monotonic() + _TIMEOUT_SECONDS
        try:
            opened = BrokerTopics(self._servers, login=self._login(), timeout=_TIMEOUT_SECONDS)
        except SourceUnreachable:
            return bounds
        with opened as topics:
            for place in places:
                try:
                    bounds[place] = topics.bounds(place)
                except SourceUnreachable:
                    # A missing partition is reported at once; a silent broker takes the whole timeout.
                    if time.monotonic() >= ends:
                        self._silent = True
                        break
        return bounds


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
