"""What storage remembers beside checkpoints is read whole, or refused by the name of its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.checkpoints.conditions import FlowStateDamaged, StorageNotReadable
from headwater.checkpoints.flow_identity import former_names, names_file
from headwater.checkpoints.pending_replacement import pending_replacements
from headwater.checkpoints.record_files import recorded
from headwater.checkpoints.relocation_note import note_file, relocation_of
from headwater.checkpoints.snapshot_versions import SnapshotVersions
from headwater.checkpoints.table_move import journal_file, mark_file, refuse_old_names, unfinished_move
from headwater.doctor.snapshots import snapshots_of

# Each file of storage, and what reads it.
READERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "a move's journal": (journal_file, unfinished_move),
    "a moved table's mark": (
        lambda folder: mark_file(folder, "sales"),
        lambda folder: refuse_old_names(folder, {"sales": None}),
    ),
    "former names": (names_file, former_names),
    "a relocation": (note_file, relocation_of),
    "a backfill": (
        lambda folder: folder / "backfills" / "sales" / "1.json",
        lambda folder: list(pending_replacements(folder)),
    ),
    "versions of snapshots": (
        lambda folder: folder / "snapshots.json",
        lambda folder: SnapshotVersions(folder / "snapshots.json", "p.f@0").read(),
    ),
    "a copy of a checkpoint": (
        lambda folder: folder / "snapshots" / "sales" / "sales" / "now" / "snapshot.json",
        lambda folder: snapshots_of(folder, "sales", "sales"),
    ),
}


@pytest.mark.parametrize("content", [b"", b'{"move', b"[1]", b"null", b'"text"', b"\xff\xfe\x00"])
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes):
    """Cut off, of another form, or no text at all: the error says which file it is and what to do, and nothing is taken from it."""
    place, read = READERS[name]
    assert not read(tmp_path), "there is nothing where nothing was written"
    file = place(tmp_path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    with pytest.raises(FlowStateDamaged, match="can't be read") as damaged:
        read(tmp_path)
    assert damaged.value.where == str(file)
    assert damaged.value.remedy
    assert file.read_bytes() == content


def test_a_file_that_may_not_be_read_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever moved it aside for that would lose what it says."""

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(StorageNotReadable, match="whether it is there"):
        recorded(tmp_path / "x.json", dict, what="The file", unknown="whether it is there")
