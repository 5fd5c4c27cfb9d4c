"""Kafka offsets by time."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.kafka.offsets import BrokerTopics, broker_failed, open_consumer

_TIMEOUT_SECONDS = 5.0


def offsets_at(
    options: Mapping[str, str], millis: int, login: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    """The first offset of each partition of a subscription at or after a moment (ms since 1970); its end where none is.

    ``login``: settings of the client by which it logs in.

    Raises:
        SourceUnreachable: where the broker does not answer.
    """
    from confluent_kafka import KafkaException, TopicPartition

    servers = options["kafka.bootstrap.servers"]
    with BrokerTopics(servers, login=login, timeout=_TIMEOUT_SECONDS) as topics:
        places = topics.partitions(options)
        ends = {place: topics.bounds(place)[1] for place in places}
    consumer = open_consumer(
        {"bootstrap.servers": servers, "group.id": "headwater-doctor", "log_level": 0, **login}
    )
    try:
        offsets = consumer.offsets_for_times(
            [TopicPartition(*place, millis) for place in places], _TIMEOUT_SECONDS
        )
    except KafkaException as error:
        raise broker_failed(servers, error) from None
    finally:
        consumer.close()
    result: dict[str, dict[str, int]] = {}
    for place in offsets:
        at = place.offset if place.offset >= 0 else ends[place.topic, place.partition]
        result.setdefault(place.topic, {})[str(place.partition)] = at
    return result
