"""Single entries of Spark's logs: what is wrong with one, and writing one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.headwater.checkpoints.test_checksums import with_checksums

from headwater.checkpoints.checksums import checksum_file
from headwater.checkpoints.log_entries import EntryFault, fault_of, put_aside, write_entry


@pytest.mark.parametrize(
    ("log", "text", "fault"),
    [
        ("offsets", "v1\n{}\n{}", None),
        ("offsets", "v1\n{}\n-", None),
        ("offsets", "v1\n{}", EntryFault.CUT),  # without the position of a source
        ("commits", "v1\n{}", None),
        ("commits", "v1", EntryFault.CUT),
        ("commits", "v1\n{", EntryFault.CUT),
        ("commits", "", EntryFault.EMPTY),
        ("commits", " \n", EntryFault.EMPTY),
        ("commits", "x1\n{}", EntryFault.HEADER),
        ("commits", "v0\n{}", EntryFault.HEADER),
        ("offsets", "v2\n{}\n{}", None),
        ("offsets", "v3\n{}\n{}", EntryFault.NEWER),
    ],
)
def test_what_is_wrong_with_an_entry(tmp_path: Path, log: str, text: str, fault: EntryFault | None):
    """An offset entry has a line for each source behind the first two; a mark has one."""
    file = tmp_path / log / "0"
    file.parent.mkdir()
    file.write_text(text)
    assert fault_of(file) is fault


def test_an_entry_that_is_another_than_was_written(tmp_path: Path):
    """It reads well, and its checksum says that it is not what Spark wrote."""
    (tmp_path / "commits").mkdir()
    file = with_checksums(tmp_path / "commits" / "0", b"v1\n{}")
    assert fault_of(file) is None
    file.write_text('v1\n{"nextBatchWatermarkMs":5}')
    assert fault_of(file) is EntryFault.ALTERED


def test_an_entry_is_written_without_the_checksum_of_before(tmp_path: Path):
    """Spark would refuse the new one by it."""
    (tmp_path / "commits").mkdir()
    file = with_checksums(tmp_path / "commits" / "0", b"v1\n{")
    write_entry(file, "v1\n{}")
    assert not checksum_file(file).exists()
    assert fault_of(file) is None


def test_what_is_put_aside_stays(tmp_path: Path):
    """Each time under a name of its own, and without a checksum, by which Spark would refuse what is written there next."""
    (tmp_path / "commits").mkdir()
    file = tmp_path / "commits" / "7"
    for text in ("first", "second", "third"):
        with_checksums(file, text.encode())
        put_aside(file)
    assert put_aside(file) is None
    assert list((tmp_path / "commits").iterdir()) == []
    aside = tmp_path / ".aside" / "commits"
    assert {one.name: one.read_text() for one in aside.iterdir()} == {
        "7": "first",
        "7.1": "second",
        "7.2": "third",
    }
