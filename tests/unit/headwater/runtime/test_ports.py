"""Ports: free ones are found, taken ones are named."""

import socket

import pytest

from headwater.runtime.conditions import PortTaken
from headwater.runtime.ports import free_port, is_free, require_free


def test_a_free_port_can_be_used():
    """The port that is given can be listened on."""
    port = free_port()
    assert require_free(port, "a test") == port


def test_a_taken_port_is_refused():
    """The error names the port, who wanted it, and the setting that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(PortTaken) as caught:
            require_free(port, "the Kafka broker", "HEADWATER_KAFKA_PORT")
    assert caught.value.condition == "PORT_TAKEN"
    assert caught.value.exit_code == 2
    assert f"port {port} is taken" in caught.value.what
    assert "the Kafka broker" in caught.value.what
    assert "set HEADWATER_KAFKA_PORT" in caught.value.remedy
