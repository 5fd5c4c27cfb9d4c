"""What is asked of a Hive metastore: tables by name, and a table created, altered, dropped. It never touches a table's files.

Tried with the metastore of Hive 2.3; the methods are those that 3 and 4 have, too. Decision 0196.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from headwater.metastore.conditions import MetastoreRefused
from headwater.metastore.connection import Connection
from headwater.metastore.entry import columns_of, without_columns
from headwater.metastore.thrift_binary import Field, Items, Kind, Pairs, Struct

# What each method declares to raise, numbered from 1.
_RAISED: Mapping[str, tuple[str, ...]] = {
    "set_ugi": ("MetaException",),
    "get_database": ("NoSuchObjectException", "MetaException"),
    "create_database": ("AlreadyExistsException", "InvalidObjectException", "MetaException"),
    "get_table_objects_by_name_req": ("MetaException", "InvalidOperationException", "UnknownDBException"),
    "create_table_with_environment_context": (
        *("AlreadyExistsException", "InvalidObjectException", "MetaException", "NoSuchObjectException"),
    ),
    "alter_table_with_environment_context": ("InvalidOperationException", "MetaException"),
    "drop_table_with_environment_context": ("NoSuchObjectException", "MetaException"),
}
# Statistics of Delta tables are in their logs. Without this the server lists all files of a table.
_NO_STATISTICS = Field(
    Kind.STRUCT,
    {1: Field(Kind.MAP, Pairs(Kind.STRING, Kind.STRING, {"DO_NOT_UPDATE_STATS": "true"}))},
)


class Declined(Exception):
    """An exception that a method declares. ``name``: its class; the text: what the server says."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class HiveMetastore:
    """The tables of one metastore. All methods raise MetastoreUnreachable and MetastoreRefused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Servers that act as their caller (hive.metastore.execute.setugi) create folders under this name.
        self._call("set_ugi", _text(user_name()), Field(Kind.LIST, Items(Kind.STRING, ())))

    def tables(self, database: str, names: Iterable[str]) -> dict[str, Struct]:
        """The tables of a database that are there, by name; none where there is no such database."""
        wanted = Field(Kind.LIST, Items(Kind.STRING, tuple(names)))
        request = Field(Kind.STRUCT, {1: _text(database), 2: wanted})
        try:
            answer = self._call("get_table_objects_by_name_req", request)
        except Declined as declined:
            if declined.name == "UnknownDBException":
                return {}
            raise _refused(f"look for tables of {database!r}", declined) from None
        tables = answer.value[1].value.values if answer is not None and 1 in answer.value else ()
        return {str(table[1].value): table for table in tables}

    def ensure_database(self, name: str) -> None:
        """Create a database unless it is there.

        It gets the server's own default folder, and never that of our tables: `DROP DATABASE ... CASCADE` removes it with all files.
        """
        try:
            self._call("get_database", _text(name))
        except Declined as declined:
            if declined.name != "NoSuchObjectException":
                raise _refused(f"look for the database {name!r}", declined) from None
        else:
            return
        try:
            self._call("create_database", Field(Kind.STRUCT, {1: _text(name)}))
        except Declined as declined:
            if declined.name != "AlreadyExistsException":
                raise _refused(f"create the database {name!r}", declined) from None

    def create(self, table: Struct) -> bool:
        """Create a table; False where one of that name is there."""
        try:
            self._call("create_table_with_environment_context", Field(Kind.STRUCT, table), _NO_STATISTICS)
        except Declined as declined:
            if declined.name == "AlreadyExistsException":
                return False
            raise _refused(f"create the table {_name(table)}", declined) from None
        return True

    def alter(self, database: str, name: str, before: Struct, table: Struct) -> None:
        """Give a table another definition, and maybe another name.

        A server refuses a column of another type at the place of an old one, as if rows were stored by place. Where it does, the columns
        are taken out first; grants and what others have set stay, as they would not with a new table.
        """
        try:
            self._alter(database, name, table)
        except Declined as declined:
            if columns_of(before) == columns_of(table):
                raise _refused(f"alter the table {database}.{name}", declined) from None
        else:
            return
        try:
            self._alter(database, name, without_columns(before))
            self._alter(database, name, table)
        except Declined as declined:
            raise _refused(f"alter the table {database}.{name}", declined) from None

    def drop(self, database: str, name: str) -> None:
        """Drop a table's entry, not its files; nothing happens where there is none."""
        keep_files = Field(Kind.BOOL, value=False)
        arguments = (_text(database), _text(name), keep_files, _NO_STATISTICS)
        try:
            self._call("drop_table_with_environment_context", *arguments)
        except Declined as declined:
            if declined.name != "NoSuchObjectException":
                raise _refused(f"drop the table {database}.{name}", declined) from None

    def _alter(self, database: str, name: str, table: Struct) -> None:
        arguments = (_text(database), _text(name), Field(Kind.STRUCT, table), _NO_STATISTICS)
        self._call("alter_table_with_environment_context", *arguments)

    def _call(self, method: str, *arguments: Field) -> Field | None:
        answer = self._connection.call(method, *arguments)
        for number, name in enumerate(_RAISED[method], start=1):
            if number in answer:
                message = answer[number].value.get(1)
                raise Declined(name, str(message.value) if message is not None else "no reason given")
        return answer.get(0)


@contextmanager
def open_metastore(addresses: Iterable[tuple[str, int]]) -> Iterator[HiveMetastore]:
    """The first of several services that takes a connection; raises MetastoreUnreachable, MetastoreRefused."""
    with Connection(tuple(addresses)) as connection:
        try:
            metastore = HiveMetastore(connection)
        except Declined as declined:
            raise _refused("take this user", declined) from None
        yield metastore


def user_name() -> str:
    """The name of the user of this process, as owner of what it creates."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container the user id may have no name
        return "unknown"


def _refused(what: str, declined: Declined) -> MetastoreRefused:
    return MetastoreRefused(
        f"The metastore does not {what}: {declined} ({declined.name}).",
        remedy="No row is lost: tables lie at their paths, and the next update tries again. The metastore's own log says more; it has to "
        "be able to reach the folder of the table, as a disk that it shares or with credentials for the store.",
    )


def _name(table: Struct) -> str:
    return f"{table[2].value}.{table[1].value}"


def _text(text: str) -> Field:
    return Field(Kind.STRING, text)
