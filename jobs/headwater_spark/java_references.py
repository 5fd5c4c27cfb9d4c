"""Objects of the JVM that Python no longer has are given back many at a time.

Py4J gives back each by a call of its own, for which both sides wake up: more than a third of all calls of an update.

Decision 0195.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

from py4j import protocol
from py4j.clientserver import JavaClient
from py4j.protocol import Py4JError

# Their answers fit into the buffers of a connection, so that neither side waits for the other to read.
MOST = 500


def give_back_together(gateway: Any) -> None:
    """Have Py4J's own thread, which gives the objects of a gateway back, take all that are waiting at once."""
    client = gateway._gateway_client  # noqa: SLF001 - it is given back behind the public face
    if isinstance(client, JavaClient):
        client.garbage_collect_object = partial(_give_back, client)


def _give_back(client: Any, target_id: str, enqueue: bool = True) -> None:
    if enqueue:
        client.finalizer_deque.appendleft((client, target_id))
        return
    ids = [target_id, *_waiting(client.finalizer_deque)]
    command = protocol.MEMORY_COMMAND_NAME + protocol.MEMORY_DEL_SUBCOMMAND_NAME
    if not client.is_connected:
        return
    try:
        connection = client._get_connection()  # noqa: SLF001 - Py4J sends one command at a time
        connection.socket.sendall(
            "".join(f"{command}{one}\n{protocol.END_COMMAND_PART}" for one in ids).encode()
        )
        for _ in ids:
            connection.stream.readline()
        client._give_back_connection(connection)  # noqa: SLF001
    except (OSError, Py4JError):
        return  # the JVM is gone, and its objects with it


def _waiting(tasks: deque[Any]) -> Iterator[str]:
    for _ in range(MOST - 1):
        try:
            task = tasks.pop()
        except IndexError:
            return
        if not isinstance(task, tuple):  # the end of the thread, which takes it next
            tasks.append(task)
            return
        yield task[1]
