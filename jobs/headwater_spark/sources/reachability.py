"""Whether the brokers that a flow reads from can be reached, checked before Spark waits minutes for them."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from headwater.definitions.source import SourceKind
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import SourceEntry

TIMEOUT_SECONDS = 5.0
_SERVERS = "kafka.bootstrap.servers"


def check_brokers(sources: Iterable[SourceEntry]) -> None:
    """Connect to one of each source's Kafka servers, and to the endpoints that Kinesis streams are read from.

    Raises SourceUnreachable where none accepts a connection.

    Spark's own client retries for three minutes before it gives up, and holds the update's lease meanwhile.
    """
    sources = tuple(sources)
    for endpoint in sorted(
        {s.options["endpoint"] for s in sources if s.kind is SourceKind.KINESIS and "endpoint" in s.options}
    ):
        url = urlsplit(endpoint)
        failure = _failure(f"{url.hostname}:{url.port or (80 if url.scheme == 'http' else 443)}")
        if failure is not None:
            raise SourceUnreachable(
                f"Kinesis at {endpoint} could not be reached: {failure}.",
                remedy="Check the endpoint and the network; the next update goes on from where this one stood.",
            )
    for servers in sorted({source.options[_SERVERS] for source in sources if _SERVERS in source.options}):
        failures = [_failure(address.strip()) for address in servers.split(",") if address.strip()]
        if failures and all(failures):
            raise SourceUnreachable(
                f"Kafka at {servers} could not be reached: {failures[0]}.",
                remedy="Check that the broker runs and that the address is right; the next update goes on from where this one stood.",
            )


def _failure(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_SECONDS):
            return None
    except (OSError, ValueError) as error:
        return str(error)
