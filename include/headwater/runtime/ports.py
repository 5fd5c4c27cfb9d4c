"""Ports on the loopback address."""

from __future__ import annotations

import socket

from headwater.runtime.conditions import PortTaken

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket() as probe:
        # A port whose last connections still linger is free for a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def require_free(port: int, what: str, setting: str = "") -> int:
    """Make sure that a server can have its configured port.

    Args:
        port: the port number.
        what: the server that wants it, for the message.
        setting: the name of the setting that chose it, for the message.

    Returns:
        The port.

    Raises:
        PortTaken: if something listens there already.

    """
    if is_free(port):
        return port
    choose = f"set {setting} to a free port" if setting else "choose another port"
    raise PortTaken(
        f"port {port} is taken, and {what} was to listen on it",
        where=f"{LOOPBACK}:{port}",
        remedy=f"end what listens there (`ss -ltnp 'sport = :{port}'` names it), or {choose}",
    )
