"""A light S3 server that fails at a chosen request, and that can be put back to what it held before.

A request fails before the store sees it, or after it was carried out, when the answer is lost; that one alone, or all from it on.
"""

from __future__ import annotations

import copy
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import parse_qsl

from tests.light_store import Answer, Connection, Server, serve
from tests.object_stores import StoreServer, server_process

_PLAN = "/_plan"
_STATES = "/_state"


class Fails(StrEnum):
    """Which requests fail from the chosen one on, and how."""

    NEVER = "never"
    ONCE_BEFORE = "once, before the store sees it"
    ONCE_AFTER = "once, and the store has done it"
    FROM_THEN_ON = "all from then on, before the store sees them"
    DONE_THEN_ALL = "the store has done it, and all behind it fail before the store sees them"


class _Broken(Exception):
    """The connection is to break."""


class _Connection(Connection):
    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except _Broken:
            self._transport.abort()


class FailingServer(Server):
    """Counts requests since the last plan."""

    connection = _Connection

    def __init__(self, log: Path, age: str) -> None:
        super().__init__(log, age)
        self.count, self.at, self.fails = 0, -1, Fails.NEVER
        self._kept: dict[str, object] = {}

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """As of a light store; raises _Broken."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text))
        if path == _PLAN:
            before, self.count = self.count, 0
            self.at, self.fails = int(query["at"]), Fails[query["fails"]]
            return Answer(body=str(before).encode())
        if path == _STATES:
            self._keep(query["do"], query["name"])
            return Answer(body=b"done")
        if path == self._age:
            return super().answer(method, target, headers, body)
        number, self.count = self.count, self.count + 1
        before = number == self.at and self.fails in (Fails.ONCE_BEFORE, Fails.FROM_THEN_ON)
        lasting = number > self.at and self.fails in (Fails.FROM_THEN_ON, Fails.DONE_THEN_ALL)
        if before or lasting:
            raise _Broken
        answer = super().answer(method, target, headers, body)
        if number == self.at and self.fails in (Fails.ONCE_AFTER, Fails.DONE_THEN_ALL):
            raise _Broken
        return answer

    def _keep(self, do: str, name: str) -> None:
        if do == "keep":
            self._kept[name] = copy.deepcopy(self._store.buckets)
        else:
            self._store.buckets = copy.deepcopy(self._kept[name])  # type: ignore[assignment]


class FailingStore(StoreServer):
    """The server as a test sees it."""

    def plan(self, fails: Fails = Fails.NEVER, at: int = 0) -> int:
        """Let requests fail, counted from now on; gives how many there were since the last plan."""
        return int(self._call(f"{_PLAN}?at={at}&fails={fails.name}"))

    def keep(self, name: str) -> None:
        """Keep what it holds now under a name."""
        self._call(f"{_STATES}?do=keep&name={name}")

    def put_back(self, name: str) -> None:
        """Let it hold what it held then."""
        self._call(f"{_STATES}?do=back&name={name}")

    def _call(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.endpoint}{path}") as answer:
            text: str = answer.read().decode()
        return text


@contextmanager
def failing_store() -> Iterator[FailingStore]:
    """Run one inside the block."""
    with server_process("-m", "tests.failing_store", "/_age") as running:
        yield FailingStore(running.endpoint, running.log, running.process)


if __name__ == "__main__":
    serve(FailingServer)
