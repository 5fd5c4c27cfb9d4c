from __future__ import annotations

import socket
from contextlib import closing

import pytest

from headwater.definitions.source import SourceKind
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import SourceEntry
from headwater_spark.sources.reachability import check_brokers


def kafka(servers: str) -> SourceEntry:
    return SourceEntry(kind=SourceKind.KAFKA, streaming=True, options={"kafka.bootstrap.servers": servers})


@pytest.fixture
def listening():
    """The address of something that accepts connections, and one where nothing does."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(socket.socket()) as silent:
        # Bound and not listening: no other process can take the port meanwhile.
        silent.bind(("127.0.0.1", 0))
        yield tuple(f"127.0.0.1:{s.getsockname()[1]}" for s in (server, silent))


def test_one_server_is_enough(listening):
    """A list of servers is reachable if one of them is; sources without brokers are not asked."""
    up, down = listening
    check_brokers([kafka(up), kafka(f"{down}, {up}"), SourceEntry(kind=SourceKind.FILES, streaming=True)])


@pytest.mark.parametrize("spoil", ["{down}", "{down},{down}", "nowhere.invalid:9092", "no-port"])
def test_none_answers(listening, spoil: str):
    """Where no server accepts a connection, the error is one that another try can help, and names the address."""
    servers = spoil.format(down=listening[1])
    with pytest.raises(SourceUnreachable) as caught:
        check_brokers([kafka(servers)])
    assert servers in caught.value.what
    assert caught.value.transient
