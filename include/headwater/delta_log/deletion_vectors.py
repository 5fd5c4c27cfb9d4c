"""Deletion vectors of Delta tables: which rows of a data file are deleted, as the file's entry in the log says.

A vector is a set of row numbers in the portable format of Roaring bitmaps, in a file of its own or in the log itself.

Decision 0208.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

from headwater.storage.place import Place

_MAGIC = 1681511377
# How a bitmap begins: with containers that are lists of runs, or without any.
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
# A container has the row numbers that are equal above the lowest 16 bits: a list of up to 4096, or a bit for each.
_CONTAINER_BITS, _LONGEST_LIST = 16, 4096
_CONTAINER_BYTES = (1 << _CONTAINER_BITS) // 8
# With runs, so many containers and more have their offsets written down; without, always.
_OFFSETS_FROM = 4
_NAME_LENGTH = 20
# Z85, the protocol's way to write bytes as text, is Python's base 85 with other digits.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_DIGITS = str.maketrans(_Z85, _B85)


class UnreadableVector(ValueError):
    """A vector that is damaged, does not fit its file, or lies outside of its table."""


def deleted_rows(table: Place, vector: Mapping[str, Any], rows: int) -> Any:
    """Which rows of a data file are deleted.

    Args:
        table: the table's folder.
        vector: ``deletionVector`` of the file's entry in the log.
        rows: how many rows the file has, deleted ones included.

    Returns:
        an Arrow array of booleans, one for each row.

    Raises:
        UnreadableVector: it does not say which rows.
        OSError: its file can't be read.
    """
    import pyarrow as pa

    bits = bytearray(-(-rows >> _CONTAINER_BITS) * _CONTAINER_BYTES)
    try:
        _read(_content(table, vector), bits)
    except UnreadableVector:
        raise
    except (struct.error, LookupError, ValueError) as error:
        raise UnreadableVector(f"a deletion vector is damaged: {error}") from None
    deleted = pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes(bits))])
    if deleted.true_count != vector["cardinality"]:
        raise UnreadableVector("a deletion vector has another number of rows than the log says")
    return deleted


def serialized(rows: Sequence[int]) -> bytes:
    """Row numbers in the format of a vector; raises ValueError where they are not ascending, each once."""
    if any(after <= before for before, after in pairwise(rows)):
        raise ValueError("row numbers are not ascending")
    parts: dict[int, list[int]] = {}
    for row in rows:
        parts.setdefault(row >> _CONTAINER_BITS, []).append(row & 0xFFFF)
    heads = b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in parts.items())
    containers = [_container(lows) for lows in parts.values()]
    offset = 8 + 8 * len(containers)
    offsets = bytearray()
    for container in containers:
        offsets += struct.pack("<I", offset)
        offset += len(container)
    begin = struct.pack("<iqIII", _MAGIC, 1, 0, _WITHOUT_RUNS, len(containers))
    return b"".join([begin, heads, bytes(offsets), *containers])


def _container(lows: list[int]) -> bytes:
    if len(lows) <= _LONGEST_LIST:
        return struct.pack(f"<{len(lows)}H", *lows)
    bits = bytearray(_CONTAINER_BYTES)
    _set(bits, 0, lows)
    return bytes(bits)


def _content(table: Place, vector: Mapping[str, Any]) -> bytes:
    """The bytes of a vector, checked where they have a checksum."""
    kind, name, size = vector["storageType"], vector["pathOrInlineDv"], int(vector["sizeInBytes"])
    if kind == "i":
        return _decoded(name)[:size]
    if kind != "u":
        raise UnreadableVector("a deletion vector lies outside of the table")
    folder, code = name[:-_NAME_LENGTH], name[-_NAME_LENGTH:]
    file = f"deletion_vector_{UUID(bytes=_decoded(code))}.bin"
    whole = (table / folder / file if folder else table / file).read_bytes()
    start = int(vector["offset"])
    content = whole[start + 4 : start + 4 + size]
    written, checksum = struct.unpack_from(">I", whole, start)[0], struct.unpack_from(">I", whole, start + 4 + size)[0]  # fmt: skip
    if written != size or checksum != zlib.crc32(content):
        raise UnreadableVector(f"{file} is damaged")
    return content


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.translate(_DIGITS))


def _read(content: bytes, bits: bytearray) -> None:
    """Set the bits of a vector's rows."""
    magic, bitmaps = struct.unpack_from("<iq", content)
    if magic != _MAGIC:
        raise UnreadableVector("a deletion vector has another format")
    at = 12
    for _ in range(bitmaps):
        (high,) = struct.unpack_from("<I", content, at)
        at = _read_bitmap(content, at + 4, bits if high == 0 else bytearray())


def _read_bitmap(content: bytes, at: int, bits: bytearray) -> int:
    """Set the bits of a bitmap's rows; returns where it ends."""
    (cookie,) = struct.unpack_from("<I", content, at)
    has_runs = cookie & 0xFFFF == _WITH_RUNS
    if not has_runs and cookie != _WITHOUT_RUNS:
        raise UnreadableVector("a deletion vector has another format")
    at += 4
    if has_runs:
        count = (cookie >> 16) + 1
        run_flags = content[at : at + (count + 7) // 8]
        at += len(run_flags)
    else:
        (count,) = struct.unpack_from("<I", content, at)
        run_flags = bytes((count + 7) // 8)
        at += 4
    heads = [struct.unpack_from("<HH", content, at + 4 * number) for number in range(count)]
    at += 4 * count
    if not has_runs or count >= _OFFSETS_FROM:
        at += 4 * count
    for number, (key, fewer) in enumerate(heads):
        first = key * _CONTAINER_BYTES
        if run_flags[number // 8] >> (number % 8) & 1:
            at = _read_runs(content, at, bits, first)
        elif fewer + 1 <= _LONGEST_LIST:
            _set(bits, first, struct.unpack_from(f"<{fewer + 1}H", content, at))
            at += 2 * (fewer + 1)
        else:
            _copy(content[at : at + _CONTAINER_BYTES], bits, first)
            at += _CONTAINER_BYTES
    return at


def _read_runs(content: bytes, at: int, bits: bytearray, first: int) -> int:
    count: int = struct.unpack_from("<H", content, at)[0]
    for number in range(count):
        start, more = struct.unpack_from("<HH", content, at + 2 + 4 * number)
        _set(bits, first, range(start, start + more + 1))
    return at + 2 + 4 * count


def _copy(container: bytes, bits: bytearray, first: int) -> None:
    if len(container) != _CONTAINER_BYTES or first + _CONTAINER_BYTES > len(bits):
        raise UnreadableVector("a deletion vector does not fit its file")
    bits[first : first + _CONTAINER_BYTES] = container


def _set(bits: bytearray, first: int, lows: Iterable[int]) -> None:
    for low in lows:
        bits[first + (low >> 3)] |= 1 << (low & 7)
