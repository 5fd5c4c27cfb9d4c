"""Objects of the JVM that nobody has any more are given back together."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, JavaClient, JavaParameters, PythonParameters

from headwater_spark.java_references import MOST, give_back_together


class Jvm:
    """Stands for the other side: what is sent at once, and whether it is still there."""

    def __init__(self, *, there: bool = True) -> None:
        self.sent: list[str] = []
        self.read = 0
        self._there = there
        self.client = JavaClient(JavaParameters(), PythonParameters(), finalizer_deque=deque())
        self.client._get_connection = lambda: SimpleNamespace(socket=self, stream=self)
        self.client._give_back_connection = lambda _: None
        give_back_together(SimpleNamespace(_gateway_client=self.client))

    def sendall(self, data: bytes) -> None:
        if not self._there:
            raise BrokenPipeError
        self.sent.append(data.decode())

    def readline(self) -> bytes:
        self.read += 1
        return b"!yv\n"

    @property
    def waiting(self) -> deque[Any]:
        return self.client.finalizer_deque


def test_all_that_wait_are_given_back_at_once() -> None:
    """Python's collector only notes an object; the thread that gives them back sends the oldest with all behind it, in their order."""
    jvm = Jvm()
    for number in range(3):
        jvm.client.garbage_collect_object(f"o{number}")
    assert jvm.sent == []
    _, first = jvm.waiting.pop()
    jvm.client.garbage_collect_object(first, False)
    assert jvm.sent == ["m\nd\no0\ne\nm\nd\no1\ne\nm\nd\no2\ne\n"]
    assert (jvm.read, len(jvm.waiting)) == (3, 0)


def test_not_more_than_a_connection_takes() -> None:
    """The others are left for the next time, and so is the end of the thread."""
    jvm = Jvm()
    for number in range(MOST + 1):
        jvm.client.garbage_collect_object(f"o{number}")
    jvm.client.garbage_collect_object(jvm.waiting.pop()[1], False)
    assert (jvm.read, len(jvm.waiting)) == (MOST, 1)
    jvm.waiting.appendleft(SHUTDOWN_FINALIZER_WORKER)
    jvm.client.garbage_collect_object(jvm.waiting.pop()[1], False)
    assert list(jvm.waiting) == [SHUTDOWN_FINALIZER_WORKER]


@pytest.mark.parametrize("connected", [True, False])
def test_a_jvm_that_is_gone(connected: bool) -> None:
    """Its objects went with it."""
    jvm = Jvm(there=False)
    jvm.client.is_connected = connected
    jvm.client.garbage_collect_object("o1", False)
    assert jvm.read == 0
