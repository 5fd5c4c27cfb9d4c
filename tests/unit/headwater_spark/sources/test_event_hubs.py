"""The Event Hubs connector's options as those of a Kafka read of the same hub."""

from __future__ import annotations

import pytest

from headwater.errors import UnsupportedArgument
from headwater_spark.sources.event_hubs import kafka_options

ENDPOINT = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=read;SharedAccessKey=aB/c+d="
STRING = f"{ENDPOINT};EntityPath=clicks"


def options(streaming: bool = True, **given: str) -> dict[str, str]:
    """Kafka's options for a connection string and more of the connector's options."""
    named = {f"eventhubs.{key.lower()}": value for key, value in given.items()}
    return kafka_options({"eventhubs.connectionstring": STRING, **named}, streaming=streaming)


def test_the_login():
    """Host, port, protocol and login come from the connection string, the topic from its EntityPath."""
    kafka = options()
    assert kafka["kafka.bootstrap.servers"] == "ns.servicebus.windows.net:9093"
    assert kafka["kafka.security.protocol"] == "SASL_SSL"
    assert kafka["kafka.sasl.mechanism"] == "PLAIN"
    assert kafka["subscribe"] == "clicks"
    login = 'PlainLoginModule required username="$ConnectionString" password="' + STRING + '";'
    assert kafka["kafka.sasl.jaas.config"].endswith(login)


def test_the_local_emulator():
    """The emulator's connection string means no TLS, and may name a port."""
    kafka = kafka_options(
        {
            "eventhubs.connectionstring": "Endpoint=sb://localhost:9092;SharedAccessKeyName=a;SharedAccessKey=b;"
            "UseDevelopmentEmulator=true;",
            "eventhubs.name": "clicks",
        },
        streaming=True,
    )
    assert kafka["kafka.bootstrap.servers"] == "localhost:9092"
    assert kafka["kafka.security.protocol"] == "SASL_PLAINTEXT"
    assert kafka["subscribe"] == "clicks"


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (
            '{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}',
            ("startingOffsets", "earliest"),
        ),
        ('{"offset": "@latest", "seqNo": -1}', ("startingOffsets", "latest")),
        ('{"offset": null, "enqueuedTime": "2025-01-01T00:00:00Z"}', ("startingTimestamp", "1735689600000")),
    ],
)
def test_positions(position: str, expected: tuple[str, str]):
    """The JSON of a position becomes Kafka's offsets or time."""
    name, value = expected
    assert options(startingPosition=position)[name] == value


def test_other_options():
    """The consumer group, limits and what to do about lost data have counterparts."""
    given = {
        "eventhubs.connectionstring": STRING, "eventhubs.consumergroup": "lake", "maxeventspertrigger": "7",
        "failondataloss": "false",
    }  # fmt: skip
    kafka = kafka_options(given, streaming=True)
    assert (kafka["kafka.group.id"], kafka["maxOffsetsPerTrigger"], kafka["failOnDataLoss"]) == (
        "lake",
        "7",
        "false",
    )


@pytest.mark.parametrize(
    "given",
    [
        {"eventhubs.connectionstring": "Server=x;SharedAccessKey=TOPSECRET"},
        {"eventhubs.connectionstring": ENDPOINT.replace("aB", "TOPSECRET")},
        {"eventhubs.connectionstring": STRING, "eventhubs.prefetchcount": "5"},
        {"eventhubs.connectionstring": STRING, "eventhubs.startingposition": '{"seqNo": 17}'},
        {"eventhubs.connectionstring": STRING, "eventhubs.startingposition": "-1x"},
        {},
    ],
)
def test_what_has_no_counterpart(given: dict[str, str]):
    """Refused with what to do, and without showing the key."""
    with pytest.raises(UnsupportedArgument) as caught:
        kafka_options(given, streaming=True)
    assert caught.value.remedy
    assert "TOPSECRET" not in str(caught.value)
