"""Hadoop's checksums are read as it writes them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from headwater.checkpoints.checksums import agrees, checksum_file


def with_checksums(file: Path, content: bytes, size: int = 512) -> Path:
    """A file with its checksums beside it."""
    file.write_bytes(content)
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    sums = b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)
    checksum_file(file).write_bytes(b"crc\0" + struct.pack(">I", size) + sums)
    return file


@pytest.mark.parametrize("length", [1, 511, 512, 513, 2000])
def test_each_change_is_seen(tmp_path: Path, length: int):
    """A file agrees; with a byte changed, added or taken away it does not; without checksums it does."""
    content = bytes(number % 251 for number in range(length))
    file = with_checksums(tmp_path / "0", content)
    assert agrees(file)
    for other in (content[:-1] + b"\xff", content + b"x" * 600, content[:-1]):
        file.write_bytes(other)
        assert not agrees(file)
    checksum_file(file).unlink()
    assert agrees(file)


def test_damaged_checksums_do_not_agree(tmp_path: Path):
    """A checksum file without a checksum is no proof."""
    file = with_checksums(tmp_path / "0", b"text")
    checksum_file(file).write_bytes(b"")
    assert not agrees(file)
