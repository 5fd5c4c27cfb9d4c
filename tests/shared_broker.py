"""One Kafka broker for the tests of a process, since its start costs seconds. Each test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.runtime.ports import free_port
from headwater_demo.kafka_broker import KafkaBroker

KEY = "hub+key/of="


def connection_string(port: int, hub: str = "clicks") -> str:
    """What an event hub's owner hands out; the emulator's flag stands for no TLS."""
    return (
        f"Endpoint=sb://127.0.0.1:{port}/;SharedAccessKeyName=read;SharedAccessKey={KEY};EntityPath={hub};"
        "UseDevelopmentEmulator=true"
    )


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker, with a second address that asks for the login of an event hub."""
    port = free_port()
    users = {"$ConnectionString": connection_string(port)}
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), users=users, login_port=port) as running:
        yield running
