"""Options of a Kafka read as open Spark's source wants them, where pipelines in use spell them differently.

All other options go to Spark unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headwater.definitions.spark_timestamp import instant_of
from headwater.errors import UnsupportedArgument

# The closed platform ships Kafka's classes under a prefix of its own; settings name classes.
_SHADED = "kafkashaded."
_TIMES = {"startingtimestamp": "startingTimestamp", "endingtimestamp": "endingTimestamp"}
_TIMES_BY_PARTITION = {
    "startingoffsetsbytimestamp": "startingOffsetsByTimestamp",
    "endingoffsetsbytimestamp": "endingOffsetsByTimestamp",
}


def kafka_overrides(options: Mapping[str, str], time_zone: str) -> dict[str, str]:
    """The options to set over those ``options`` (keys in lower case).

    ``startingTimestamp`` and ``endingTimestamp`` may be a date and time, which Kafka's source does not accept: it is converted
    to milliseconds since 1970, in ``time_zone`` unless it has an offset of its own.

    Raises:
        UnsupportedArgument: where a time can't be read, or an option is for the closed platform alone.
    """
    changed: dict[str, str] = {}
    for key, value in options.items():
        if key.startswith("databricks."):
            raise UnsupportedArgument(
                f"The Kafka option {key} is for the closed platform alone.",
                remedy="Say how to log in with Kafka's own settings: kafka.security.protocol, kafka.sasl.mechanism, "
                "kafka.sasl.jaas.config.",
            )
        if key in _TIMES:
            changed[_TIMES[key]] = str(epoch_millis(value, _TIMES[key], time_zone))
        elif key in _TIMES_BY_PARTITION:
            changed[_TIMES_BY_PARTITION[key]] = _by_partition(value, _TIMES_BY_PARTITION[key], time_zone)
        elif key.startswith("kafka.") and _SHADED in value:
            changed[key] = value.replace(_SHADED, "")
    return changed


def epoch_millis(value: Any, option: str, time_zone: str) -> int:
    """A time as milliseconds since 1970: an int stands for itself, a text is a date or a date and time."""
    text = str(value).strip()
    if text.lstrip("-").isdigit():
        return int(text)
    moment = instant_of(text, time_zone)
    if moment is None:
        raise UnsupportedArgument(
            f"{option}={text!r} is not a time.",
            remedy='Write "2025-01-01 00:00:00", or milliseconds since 1970.',
        )
    return int(moment.timestamp() * 1000)


def _by_partition(value: str, option: str, time_zone: str) -> str:
    try:
        topics = json.loads(value)
        times = {
            topic: {part: epoch_millis(at, option, time_zone) for part, at in parts.items()}
            for topic, parts in topics.items()
        }
    except (json.JSONDecodeError, AttributeError):
        raise UnsupportedArgument(
            f"{option} is not JSON of topics and partitions.", remedy='Write {"topic": {"0": 1735689600000}}.'
        ) from None
    return json.dumps(times)
