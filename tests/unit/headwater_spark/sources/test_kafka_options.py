"""Kafka's options go through unchanged, but for what open Spark spells otherwise."""

from __future__ import annotations

import pytest

from headwater.errors import UnsupportedArgument
from headwater_spark.sources.kafka_options import kafka_overrides

MILLIS = "1735689600000"  # 2025-01-01 00:00:00 UTC


@pytest.mark.parametrize(
    ("given", "zone", "expected"),
    [
        ("2025-01-01 00:00:00", "UTC", MILLIS),
        ("2025-01-01", "UTC", MILLIS),
        ("2025-01-01T00:00:00Z", "Europe/Berlin", MILLIS),
        ("2025-01-01 01:00:00", "Europe/Berlin", MILLIS),
        ("2025-01-01T01:00:00+01:00", "UTC", MILLIS),
        (MILLIS, "Europe/Berlin", MILLIS),
    ],
)
def test_a_time_becomes_milliseconds(given: str, zone: str, expected: str):
    """A date and time is read in the session's zone unless it has its own; milliseconds stay."""
    assert kafka_overrides({"startingtimestamp": given}, zone) == {"startingTimestamp": expected}
    assert kafka_overrides({"endingtimestamp": given}, zone) == {"endingTimestamp": expected}


def test_times_by_partition():
    """The same inside the JSON of times by partition."""
    given = '{"a": {"0": "2025-01-01", "1": 5}, "b": {"0": "7"}}'
    changed = kafka_overrides({"startingoffsetsbytimestamp": given}, "UTC")
    assert changed == {"startingOffsetsByTimestamp": '{"a": {"0": 1735689600000, "1": 5}, "b": {"0": 7}}'}


def test_class_names_of_the_closed_platform():
    """The prefix of its own that the closed platform gives Kafka's classes is taken off."""
    login = 'kafkashaded.org.apache.kafka.common.security.plain.PlainLoginModule required username="kafkashaded" password="x";'
    changed = kafka_overrides({"kafka.sasl.jaas.config": login, "subscribe": "kafkashaded.topic"}, "UTC")
    assert changed["kafka.sasl.jaas.config"].startswith(
        "org.apache.kafka.common.security.plain.PlainLoginModule"
    )
    assert list(changed) == ["kafka.sasl.jaas.config"]


def test_everything_else_is_left_alone():
    """Offsets in all forms, limits and security options are not touched."""
    given = {
        "kafka.bootstrap.servers": "a:1",
        "subscribepattern": "x.*",
        "startingoffsets": '{"t": {"0": -2}}',
        "maxoffsetspertrigger": "5",
        "kafka.ssl.truststore.password": "secret",
    }
    assert kafka_overrides(given, "UTC") == {}


@pytest.mark.parametrize(
    "given",
    [
        {"startingtimestamp": "yesterday"},
        {"startingoffsetsbytimestamp": "not json"},
        {"startingoffsetsbytimestamp": '{"t": 5}'},
        {"databricks.servicecredential": "x"},
    ],
)
def test_what_can_not_be_honoured(given: dict[str, str]):
    """A time that does not parse, and options of the closed platform, are refused with what to write."""
    with pytest.raises(UnsupportedArgument) as caught:
        kafka_overrides(given, "UTC")
    assert caught.value.remedy
