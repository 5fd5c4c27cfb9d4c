"""The checksums that Hadoop keeps beside the files of a local checkpoint (``.name.crc``), and checks on each read."""

from __future__ import annotations

import struct
import zlib

from headwater.storage.place import Place

_MAGIC = b"crc\0"


def checksum_file(file: Place) -> Place:
    """Where the checksums of a file are."""
    return file.with_name(f".{file.name}.crc")


def agrees(file: Place) -> bool:
    """Whether a file is what its checksums say; True where it has none."""
    try:
        sums = checksum_file(file).read_bytes()
    except FileNotFoundError:
        return True
    if len(sums) < 8 or not sums.startswith(_MAGIC):
        return False
    (size,) = struct.unpack(">I", sums[4:8])
    expected = [value for (value,) in struct.iter_unpack(">I", sums[8 : len(sums) - (len(sums) - 8) % 4])]
    number = 0
    with file.open("rb") as stream:
        while part := stream.read(size):
            if number >= len(expected) or zlib.crc32(part) != expected[number]:
                return False
            number += 1
    return number == len(expected)
