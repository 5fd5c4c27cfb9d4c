"""Thrift's binary protocol: values to bytes and back. What a server sends beyond what we know is kept, so that it can be sent back.

Decision 0196.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

# Bytes, and items of a list: an answer that says more is not one of a metastore.
_MOST_BYTES = 64 * 1024 * 1024
_MOST_ITEMS = 10_000_000
_DEEPEST = 32
_VERSION = 0x80010000


class Kind(IntEnum):
    """The types of values, by their numbers on the wire."""

    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


_FORMATS = {Kind.BYTE: ">b", Kind.DOUBLE: ">d", Kind.I16: ">h", Kind.I32: ">i", Kind.I64: ">q"}


class Field(NamedTuple):
    """A value of a struct with its type."""

    kind: Kind
    value: Any


# A struct: its fields by number.
Struct = dict[int, Field]


class Items(NamedTuple):
    """A list or a set: the type of its items, and they."""

    kind: Kind
    values: Sequence[Any]


class Pairs(NamedTuple):
    """A map: the types of its keys and values, and they."""

    key_kind: Kind
    value_kind: Kind
    values: Mapping[Any, Any]


class MessageType(IntEnum):
    """The types of messages, by their numbers on the wire."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3


class Message(NamedTuple):
    """A call or an answer."""

    type: MessageType
    name: str
    number: int
    body: Struct


class NotThrift(ValueError):
    """Bytes that are no message of this protocol."""


def message_bytes(message: Message) -> bytes:
    """A message as it is sent."""
    head = (
        struct.pack(">I", _VERSION | message.type) + _text(message.name) + struct.pack(">i", message.number)
    )
    return head + value_bytes(Kind.STRUCT, message.body)


def read_message(read: Callable[[int], bytes]) -> Message:
    """The next message.

    Args:
        read: gives exactly as many bytes as it is asked for.

    Raises:
        NotThrift: what comes is no message.
    """
    (version,) = struct.unpack(">I", read(4))
    if version & 0xFFFF0000 != _VERSION or version & 0xFF not in (
        MessageType.REPLY,
        MessageType.EXCEPTION,
        MessageType.CALL,
    ):
        raise NotThrift(f"the answer begins with {version:#010x}")
    name = _read_text(read)
    (number,) = struct.unpack(">i", read(4))
    return Message(MessageType(version & 0xFF), name, number, read_value(Kind.STRUCT, read))


def value_bytes(kind: Kind, value: Any) -> bytes:
    """A value as it is sent."""
    if kind is Kind.BOOL:
        return b"\x01" if value else b"\x00"
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value)
    if kind is Kind.STRING:
        return _text(value)
    if kind is Kind.STRUCT:
        fields = (
            struct.pack(">bh", f.kind, number) + value_bytes(f.kind, f.value) for number, f in value.items()
        )
        return b"".join(fields) + b"\x00"
    if kind is Kind.MAP:
        pairs = (
            value_bytes(value.key_kind, k) + value_bytes(value.value_kind, v) for k, v in value.values.items()
        )
        return struct.pack(">bbi", value.key_kind, value.value_kind, len(value.values)) + b"".join(pairs)
    items = (value_bytes(value.kind, item) for item in value.values)
    return struct.pack(">bi", value.kind, len(value.values)) + b"".join(items)


def read_value(kind: Kind, read: Callable[[int], bytes], depth: int = 0) -> Any:
    """The next value of a type; raises NotThrift where there is none."""
    if depth > _DEEPEST:
        raise NotThrift("values lie inside each other without an end")
    if kind is Kind.BOOL:
        return read(1) != b"\x00"
    if kind in _FORMATS:
        return struct.unpack(_FORMATS[kind], read(struct.calcsize(_FORMATS[kind])))[0]
    if kind is Kind.STRING:
        return _read_text(read)
    if kind is Kind.STRUCT:
        return _read_struct(read, depth)
    if kind is Kind.MAP:
        key_kind, value_kind = (_kind(read) for _ in range(2))
        count = _count(read)
        pairs = {
            read_value(key_kind, read, depth + 1): read_value(value_kind, read, depth + 1)
            for _ in range(count)
        }
        return Pairs(key_kind, value_kind, pairs)
    if kind in (Kind.LIST, Kind.SET):
        of = _kind(read)
        return Items(of, tuple(read_value(of, read, depth + 1) for _ in range(_count(read))))
    raise NotThrift(f"a value of type {kind}")


def _read_struct(read: Callable[[int], bytes], depth: int) -> Struct:
    fields: Struct = {}
    while (kind := _kind(read)) is not Kind.STOP:
        (number,) = struct.unpack(">h", read(2))
        fields[number] = Field(kind, read_value(kind, read, depth + 1))
    return fields


def _kind(read: Callable[[int], bytes]) -> Kind:
    number = read(1)[0]
    try:
        return Kind(number)
    except ValueError:
        raise NotThrift(f"there is no type {number}") from None


def _count(read: Callable[[int], bytes], most: int = _MOST_ITEMS) -> int:
    (count,) = struct.unpack(">i", read(4))
    if not 0 <= count <= most:
        raise NotThrift(f"the answer speaks of {count} items or bytes")
    return int(count)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack(">i", len(data)) + data


def _read_text(read: Callable[[int], bytes]) -> str:
    return read(_count(read, _MOST_BYTES)).decode("utf-8", "surrogateescape")
