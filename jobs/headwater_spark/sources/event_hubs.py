"""``format("eventhubs")``: Azure Event Hubs through its Kafka endpoint, with the connector's option and column names.

The connector itself was never published for Spark 4. The connection string becomes the Kafka client's login, the hub
is the topic, and the rows get the connector's columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.errors import UnsupportedArgument
from headwater_spark.sources.kafka_options import epoch_millis

FORMAT = "eventhubs"
_PORT = 9093
_KNOWN = {
    "eventhubs.connectionstring", "eventhubs.name", "eventhubs.consumergroup", "eventhubs.startingposition",
    "eventhubs.endingposition", "maxeventspertrigger", "eventhubs.maxeventspertrigger", "failondataloss",
    "minpartitions",
}  # fmt: skip
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class ConnectionString:
    """The parts of ``Endpoint=sb://HOST/;SharedAccessKeyName=..;SharedAccessKey=..;EntityPath=HUB``.

    ``secure``: false only for the local emulator (``UseDevelopmentEmulator=true``).
    """

    host: str
    port: int
    hub: str | None
    secure: bool

    @classmethod
    def parse(cls, text: str) -> ConnectionString:
        """Read the text; raises UnsupportedArgument, which does not show it: it holds a key."""
        parts = dict(part.split("=", 1) for part in text.strip().split(";") if "=" in part)
        values = {key.strip().lower(): value.strip() for key, value in parts.items()}
        endpoint = re.fullmatch(r"sb://([^/:]+)(?::(\d+))?/?", values.get("endpoint", ""))
        if endpoint is None:
            raise UnsupportedArgument(
                "eventhubs.connectionString is not of the form that Event Hubs gives out.",
                remedy="It begins with Endpoint=sb://NAMESPACE.servicebus.windows.net/;SharedAccessKeyName and so on. "
                "Pass it as it is, not encrypted.",
            )
        emulator = values.get("usedevelopmentemulator", "").lower() == "true"
        port = int(endpoint[2]) if endpoint[2] else _PORT
        return cls(endpoint[1], port, values.get("entitypath"), not emulator)


def kafka_options(connector_options: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """The options of a Kafka read of the same hub. ``connector_options``: the connector's options, keys in lower case.

    Raises:
        UnsupportedArgument: where an option is missing, or has no counterpart.
    """
    unknown = sorted(set(connector_options) - _KNOWN)
    if unknown:
        raise UnsupportedArgument(
            f"The Event Hubs option {unknown[0]} has no counterpart at the hub's Kafka endpoint.",
            remedy='Leave it out, or read with format("kafka") and Kafka\'s own settings.',
        )
    if streaming and "eventhubs.endingposition" in connector_options:
        raise UnsupportedArgument(
            "eventhubs.endingPosition ends a batch, and a stream has no end.",
            remedy="Leave it out, or read with spark.read.",
        )
    text = connector_options.get("eventhubs.connectionstring", "")
    connection = ConnectionString.parse(text)
    hub = connector_options.get("eventhubs.name") or connection.hub
    if not hub:
        raise UnsupportedArgument(
            "Neither the connection string nor the options say which event hub to read.",
            remedy='End the connection string with ";EntityPath=HUB", or set .option("eventhubs.name", "HUB").',
        )
    options = {
        "kafka.bootstrap.servers": f"{connection.host}:{connection.port}",
        "kafka.security.protocol": "SASL_SSL" if connection.secure else "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{_LOGIN} required username="$ConnectionString" password="{_quoted(text)}";',
        "subscribe": hub,
        "includeHeaders": "true",
        **_position(connector_options.get("eventhubs.startingposition"), "starting"),
    }
    if not streaming:
        options |= _position(connector_options.get("eventhubs.endingposition"), "ending")
    for name, kafka_name in {
        "eventhubs.consumergroup": "kafka.group.id",
        "maxeventspertrigger": "maxOffsetsPerTrigger",
        "eventhubs.maxeventspertrigger": "maxOffsetsPerTrigger",
        "failondataloss": "failOnDataLoss",
        "minpartitions": "minPartitions",
    }.items():
        if name in connector_options:
            options[kafka_name] = connector_options[name]
    return options


def event_hubs_frame(reader: Any, connector_options: Mapping[str, str], *, streaming: bool) -> DataFrame:
    """The hub's events in the connector's columns. ``reader``: a fresh reader of Spark's own."""
    frame: DataFrame = (
        reader.format("kafka").options(**kafka_options(connector_options, streaming=streaming)).load()
    )
    return frame.select(
        F.col("value").alias("body"),
        F.col("partition").cast("string").alias("partition"),
        F.col("offset").cast("string").alias("offset"),
        F.col("offset").alias("sequenceNumber"),
        F.col("timestamp").alias("enqueuedTime"),
        F.lit(None).cast("string").alias("publisher"),
        F.col("key").cast("string").alias("partitionKey"),
        _properties().alias("properties"),
        F.create_map().cast("map<string,string>").alias("systemProperties"),
    )


def _properties() -> Any:
    entries = F.transform(
        F.coalesce(F.col("headers"), F.array()),
        lambda header: F.struct(header["key"].alias("key"), header["value"].cast("string").alias("value")),
    )
    return F.map_from_entries(entries)


def _position(text: str | None, option: str) -> dict[str, str]:
    if text is None:
        return {}
    try:
        position = json.loads(text)
        offset, number, time = (position.get(key) for key in ("offset", "seqNo", "enqueuedTime"))
    except (json.JSONDecodeError, AttributeError):
        raise UnsupportedArgument(
            f"eventhubs.{option}Position is not the JSON of a position.",
            remedy='Write {"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}.',
        ) from None
    if time is not None:
        return {f"{option}Timestamp": str(epoch_millis(time, f"eventhubs.{option}Position", "UTC"))}
    if offset in ("-1", -1):
        return {f"{option}Offsets": "earliest"}
    if offset == "@latest":
        return {f"{option}Offsets": "latest"}
    raise UnsupportedArgument(
        f"eventhubs.{option}Position starts at {'an offset' if offset is not None else f'sequence number {number}'}, "
        "which the Kafka endpoint knows per partition only.",
        remedy='Use an enqueuedTime, or format("kafka") with startingOffsets per partition.',
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
