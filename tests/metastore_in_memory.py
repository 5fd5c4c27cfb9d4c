"""A metastore service for tests: the methods that are used, over real sockets, with tables in memory. It answers as Hive 2.3 does."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headwater.metastore.entry import columns_of
from headwater.metastore.thrift_binary import (
    Field,
    Items,
    Kind,
    Message,
    MessageType,
    Struct,
    message_bytes,
    read_message,
)


@dataclass
class MetastoreInMemory:
    """What the service has, and what was called. ``fails``: methods that answer with a MetaException."""

    port: int = 0
    databases: set[str] = field(default_factory=lambda: {"default"})
    tables: dict[tuple[str, str], Struct] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)

    @property
    def uri(self) -> str:
        """The address for ``metastore.uri``."""
        return f"thrift://127.0.0.1:{self.port}"

    def parameters(self, database: str, table: str) -> dict[str, str]:
        """The properties of a table."""
        return dict(self.tables[database, table][9].value.values)

    def answer(self, method: str, arguments: list[Any]) -> tuple[int, Field | None]:
        """The number and the value of the field of the answer."""
        if method in self.fails:
            return _NUMBER_OF_META[method], _raised("it was told to fail")
        handler: Callable[..., tuple[int, Field | None]] = getattr(self, f"_{method}")
        return handler(*arguments)

    def _set_ugi(self, user: str, groups: Items) -> tuple[int, Field | None]:
        assert user
        return 0, Field(Kind.LIST, Items(Kind.STRING, tuple(groups.values)))

    def _get_database(self, name: str) -> tuple[int, Field | None]:
        return (
            (0, Field(Kind.STRUCT, {1: _text(name)}))
            if name in self.databases
            else (1, _raised("no such database"))
        )

    def _create_database(self, database: Struct) -> tuple[int, Field | None]:
        assert 3 not in database, "its folder must not be ours"
        self.databases.add(database[1].value)
        return 0, None

    def _get_table_objects_by_name_req(self, request: Struct) -> tuple[int, Field | None]:
        database, names = request[1].value, request[2].value.values
        if database not in self.databases:
            return 3, _raised("unknown database")
        found = tuple(self.tables[database, name] for name in names if (database, name) in self.tables)
        return 0, Field(Kind.STRUCT, {1: Field(Kind.LIST, Items(Kind.STRUCT, found))})

    def _create_table_with_environment_context(self, table: Struct, _: Struct) -> tuple[int, Field | None]:
        key = (table[2].value, table[1].value)
        if key in self.tables:
            return 1, _raised("it is there")
        if key[0] not in self.databases:
            return 2, _raised("no such database")
        self.tables[key] = table
        return 0, None

    def _alter_table_with_environment_context(
        self, database: str, name: str, table: Struct, _: Struct
    ) -> tuple[int, Field | None]:
        if (database, name) not in self.tables:
            return 1, _raised("no such table")
        before, after = columns_of(self.tables[database, name]), columns_of(table)
        if any(old.type != new.type for old, new in zip(before, after, strict=False)):
            return 1, _raised("The following columns have types incompatible")
        del self.tables[database, name]
        self.tables[table[2].value, table[1].value] = table
        return 0, None

    def _drop_table_with_environment_context(
        self, database: str, name: str, delete_files: bool, _: Struct
    ) -> tuple[int, Field | None]:
        assert not delete_files
        return (0, None) if self.tables.pop((database, name), None) else (1, _raised("no such table"))


_NUMBER_OF_META = {
    "set_ugi": 1,
    "get_database": 2,
    "create_database": 3,
    "get_table_objects_by_name_req": 1,
    "create_table_with_environment_context": 3,
    "alter_table_with_environment_context": 2,
    "drop_table_with_environment_context": 2,
}


@contextmanager
def metastore_in_memory() -> Iterator[MetastoreInMemory]:
    """A running service on loopback, until the end of the block."""
    state = MetastoreInMemory()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.peek(1):
                call = read_message(self.rfile.read)
                state.calls.append(call.name)
                number, value = state.answer(call.name, [field.value for field in call.body.values()])
                body = {} if value is None else {number: value}
                self.wfile.write(message_bytes(Message(MessageType.REPLY, call.name, call.number, body)))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()


def _raised(message: str) -> Field:
    return Field(Kind.STRUCT, {1: _text(message)})


def _text(text: str) -> Field:
    return Field(Kind.STRING, text)
