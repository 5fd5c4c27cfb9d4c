"""A connection to a metastore service: one call after the other, each with a time limit."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from headwater.metastore.conditions import MetastoreRefused, MetastoreUnreachable
from headwater.metastore.thrift_binary import (
    Field,
    Kind,
    Message,
    MessageType,
    NotThrift,
    Struct,
    message_bytes,
    read_message,
)

_CONNECT_SECONDS = 5.0
_CALL_SECONDS = 30.0


class Connection:
    """An open connection to the first address that takes one. After an error of the network it is of no use any more."""

    def __init__(self, addresses: Sequence[tuple[str, int]]) -> None:
        """``addresses``: hosts and ports, tried in their order. Raises MetastoreUnreachable."""
        self._socket, self._address = _connected(addresses)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._socket.close()

    def call(self, method: str, *arguments: Field) -> Struct:
        """Call a method and return its answer: field 0 is the result, the others are what it declares to raise.

        Args:
            method: its name.
            arguments: numbered from 1.

        Raises:
            MetastoreUnreachable: no answer came, or not all of it; whether it was done is not known.
            MetastoreRefused: the server does not speak this protocol, or does not know the method.
        """
        self._number += 1
        body = dict(enumerate(arguments, start=1))
        try:
            self._socket.sendall(message_bytes(Message(MessageType.CALL, method, self._number, body)))
            answer = read_message(self._read)
        except NotThrift as error:
            raise MetastoreRefused(
                f"What answers does not speak as a metastore does: {error}.",
                where=self._address,
                remedy="Check `metastore.uri`: the port of a Hive metastore service is wanted, with plain binary Thrift. One that "
                "wants Kerberos (SASL), TLS, HTTP, framed or compact transport can't be reached.",
            ) from None
        except OSError as error:
            raise _unreachable(error, self._address) from None
        if answer.type is MessageType.EXCEPTION:
            reason = answer.body.get(1, Field(Kind.STRING, "it gives no reason")).value
            raise MetastoreRefused(
                f"The metastore can't do {method}: {reason}",
                where=self._address,
                remedy="It is of a version that this one was not tried with, or its database fails: its log says more.",
            )
        return answer.body

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError("the connection was closed before the answer had come")
            data += part
        return bytes(data)


def _connected(addresses: Sequence[tuple[str, int]]) -> tuple[socket.socket, str]:
    failure: OSError | None = None
    for host, port in addresses:
        try:
            opened = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
        except OSError as error:
            failure = error
            continue
        opened.settimeout(_CALL_SECONDS)
        return opened, f"thrift://{host}:{port}"
    where = ",".join(f"thrift://{host}:{port}" for host, port in addresses)
    raise _unreachable(failure or OSError("no address"), where)


def _unreachable(error: OSError, where: str) -> MetastoreUnreachable:
    return MetastoreUnreachable(
        f"The metastore does not answer: {error.strerror or error or type(error).__name__}.",
        where=where,
        remedy="No row is lost: tables lie at their paths, and the next update registers what is left to register. Start the metastore, "
        "or correct `metastore.uri`. One that wants Kerberos or TLS closes the connection, too: it can't be reached.",
    )
