"""Deletion vectors are read as other engines read them, and refused where they are damaged."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.delta_vectors import inline, with_vector, z85

from headwater.delta_log.deletion_vectors import UnreadableVector, deleted_rows, serialized

# Lists, bitmaps, full containers and gaps between containers.
ROWS = st.sets(
    st.one_of(st.integers(0, 20), st.integers(65_530, 65_540), st.integers(200_000, 200_100)), max_size=40
)
DENSE = st.tuples(st.integers(0, 3), st.integers(0, 70_000), st.integers(1, 9)).map(
    lambda spec: set(range(spec[0] * 65_536, spec[0] * 65_536 + spec[1], spec[2]))
)


def in_a_file(
    table: Path, content: bytes, cardinality: int, folder: str = "", before: int = 1
) -> dict[str, Any]:
    """Written as Delta does; ``before``: how many bytes are before it, the format's number included."""
    name: UUID = uuid4()
    (table / folder).mkdir(parents=True, exist_ok=True)
    written = (
        b"\1" * before + struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    )
    (table / folder / f"deletion_vector_{name}.bin").write_bytes(written)
    code = z85(name.bytes)
    return {"storageType": "u", "pathOrInlineDv": folder + code, "offset": before, "sizeInBytes": len(content), "cardinality": cardinality}  # fmt: skip


def numbers(deleted: Any) -> set[int]:
    return {number for number, is_deleted in enumerate(deleted.to_pylist()) if is_deleted}


@settings(max_examples=60, deadline=None)
@given(rows=st.one_of(ROWS, DENSE), more=st.integers(0, 3))
def test_rows_come_back(rows: set[int], more: int):
    """The rows that were written down are the rows that are deleted, whatever their number and however many rows the file has."""
    count = max(rows, default=0) + 1 + more
    deleted = deleted_rows(Path(), inline(serialized(sorted(rows)), len(rows)), count)
    assert len(deleted) == count
    assert numbers(deleted) == rows


@pytest.mark.parametrize("rows", [{0}, {1, 69_999}, set(range(0, 70_000, 3)), set(range(60_000, 70_000))])
def test_delta_rs_reads_the_same(tmp_path: Path, rows: set[int]):
    """delta-rs finds the same rows deleted: in the log, in a file, and in one of several in a file below a prefix."""
    table = tmp_path / "t"
    content = serialized(sorted(rows))
    for vector in (
        inline(content, len(rows)),
        in_a_file(table, content, len(rows)),
        in_a_file(table, content, len(rows), folder="ab", before=77),
    ):
        write_deltalake(str(table), pa.table({"n": pa.array(range(70_000))}), mode="overwrite")
        with_vector(table, DeltaTable(str(table)).version(), vector)
        (theirs,) = pa.RecordBatchReader.from_stream(DeltaTable(str(table)).deletion_vectors()).read_all()["selection_vector"].to_pylist()  # fmt: skip
        assert {n for n, stays in enumerate(theirs) if not stays} == rows
        assert numbers(deleted_rows(table, vector, 70_000)) == rows


def test_runs():
    """A container that is a list of runs, as Delta writes long stretches of rows; with four containers, offsets are there."""
    for count in (1, 4):
        cookie = struct.pack("<I", 12347 | (count - 1) << 16) + bytes([0b1])
        heads = b"".join(struct.pack("<HH", key, 9 if key == 0 else 0) for key in range(count))
        offsets = bytes(4 * count) if count == 4 else b""
        runs = struct.pack("<HHHHH", 2, 3, 4, 100, 4)
        lists = struct.pack("<H", 7) * (count - 1)
        content = struct.pack("<iqI", 1681511377, 1, 0) + cookie + heads + offsets + runs + lists
        wanted = {*range(3, 8), *range(100, 105), *(65_536 * key + 7 for key in range(1, count))}
        assert numbers(deleted_rows(Path(), inline(content, len(wanted)), 300_000)) == wanted


def test_what_is_damaged_is_refused(tmp_path: Path):
    """A vector that does not say what the log says of it is an error, never other rows."""
    good = in_a_file(tmp_path, serialized([1, 5]), 2)
    assert numbers(deleted_rows(tmp_path, good, 6)) == {1, 5}
    many = inline(serialized(range(5000)), 5000)
    content = serialized([1, 5])
    bad = {
        "another number of rows": ({**good, "cardinality": 3}, 6),
        "a row that the file does not have": (good, 5),
        "a container that the file does not have": (inline(serialized([1, 65_536 * 3]), 2), 6),
        "a bitmap that the file does not have": (inline(serialized(range(65_536, 70_000 + 65_536)), 70_000), 6),
        "another size": ({**good, "sizeInBytes": good["sizeInBytes"] - 1}, 6),
        "another place": ({**good, "offset": 2}, 6),
        "another table's": ({**good, "storageType": "p"}, 6),
        "another format": (inline(b"\1" + content[1:], 2), 6),
        "another kind of bitmap": (inline(content[:16] + b"\1\1\1\1" + content[20:], 2), 6),
        "its end is missing": ({**many, "sizeInBytes": 100}, 5000),
    }  # fmt: skip
    for name, (vector, rows) in bad.items():
        with pytest.raises(UnreadableVector):
            print(name, numbers(deleted_rows(tmp_path, vector, rows)))
    (file,) = tmp_path.glob("*.bin")
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    with pytest.raises(UnreadableVector, match="damaged"):
        deleted_rows(tmp_path, good, 6)
    for rows in ([5, 1], [5, 5], [70_000, 5]):
        with pytest.raises(ValueError, match="ascending"):
            serialized(rows)
