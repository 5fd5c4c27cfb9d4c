"""A file that may not be read is not taken for a damaged one, and what others remove meanwhile is not missed."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from headwater.checkpoints import offsets
from headwater.checkpoints.conditions import FlowStateDamaged, StorageNotReadable
from headwater.checkpoints.flow_identity import former_names, names_file
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.listing import list_checkpoints
from headwater.checkpoints.table_move import journal_file, unfinished_move
from headwater.errors import CheckpointUnreadable
from headwater.maintenance.table_log import _last_checkpoint
from headwater.preflight.checks import CHECKS, examine, mended
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.state_checks import StateStore, _missing_parts


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch):
    """Lock a file against reading, as its rights would for a user other than root."""
    refused: set[str] = set()
    opens = Path.open

    def open_(self: Path, *arguments, **options):
        if str(self) in refused:
            raise PermissionError(13, "Permission denied", str(self))
        return opens(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", open_)
    return lambda path: refused.add(str(path))


def begun(root: Path) -> FlowStart:
    """A flow with one committed batch."""
    checkpoint = FlowCheckpoint(root / "pipelines" / "p" / "checkpoints" / "t" / "f")
    folder = checkpoint.epoch_folder(0)
    for log, text in (("offsets", 'v1\n{}\n{"ev":{"0":3}}'), ("commits", "v1\n{}")):
        (folder / log).mkdir(parents=True)
        (folder / log / "0").write_text(text)
    (folder / "metadata").write_text('{"id":"9a"}')
    state = FlowState(query_id="9a", completed=True, sink_id="kafka:t")
    checkpoint.write_state(state)
    start = FlowStart(
        "p", "f", "t", checkpoint, state, None, "kafka:t", is_sink=True, last_recorded=lambda: 0
    )
    assert examine(start, CHECKS) == []
    return start


def test_a_locked_metadata_file_is_not_written_again(tmp_path: Path, locked):
    """A query id that may not be read is not lost: nothing is repaired, the start is refused and says what is locked."""
    start = begun(tmp_path)
    file = start.folder / "metadata"
    before = file.read_bytes(), file.stat().st_ino
    locked(file)
    damages = examine(start, CHECKS)
    assert {damage.condition for damage in damages} == {"STORAGE_NOT_READABLE"}
    assert not any(damage.repairs or damage.mend for damage in damages)
    with pytest.raises(StorageNotReadable, match="Permission denied") as raised:
        mended(examine(start))
    assert raised.value.where == str(file)
    assert "leave it where it is" in raised.value.remedy
    assert raised.value.transient
    with os.fdopen(os.open(file, os.O_RDONLY), "rb") as stream:
        assert (stream.read(), file.stat().st_ino) == before


@pytest.mark.parametrize("name", ["offsets/0", "commits/0"])
def test_locked_entries_of_the_logs_are_not_damage(tmp_path: Path, locked, name: str):
    """Whatever a start would say of a cut-off entry, it says none of it of a locked one, and offers no repair."""
    start = begun(tmp_path)
    locked(start.folder / name)
    damages = examine(start, CHECKS)
    assert {damage.condition for damage in damages} <= {"STORAGE_NOT_READABLE", "CHECK_FAILED"}
    assert damages
    assert not any(damage.repairs or damage.mend for damage in damages)


def test_the_listing_shows_what_is_locked(tmp_path: Path, locked):
    """The other checkpoints are listed, and the locked one with its problem."""
    start = begun(tmp_path)
    locked(start.folder / "offsets" / "0")
    (entry,) = list_checkpoints(tmp_path / "pipelines" / "p")
    assert "Permission denied" in (entry.problem or "")


def test_a_missing_and_a_cut_file_stay_unreadable_checkpoints(tmp_path: Path):
    """Only what the system refuses is the new error; what is gone or not text is what it was."""
    with pytest.raises(CheckpointUnreadable):
        offsets.read_offsets(tmp_path, 3)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_bytes(b"v1\n\xff")
    with pytest.raises(CheckpointUnreadable):
        offsets.read_offsets(tmp_path, 3)


def test_journals_that_may_not_be_read(tmp_path: Path, locked):
    """Nobody is sent for a backup of a file that is only locked; a cut one is damaged as before."""
    for file, read in ((names_file(tmp_path), former_names), (journal_file(tmp_path), unfinished_move)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{")
        with pytest.raises(FlowStateDamaged):
            read(tmp_path)
        locked(file)
        with pytest.raises(StorageNotReadable):
            read(tmp_path)


def test_a_locked_part_of_the_state_is_not_called_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cut archive is damage, one that may not be read is an error that says so."""
    (tmp_path / "5.zip").write_bytes(b"PK, and no more")
    store = StateStore(tmp_path, whole={5: "5.zip"})
    assert "can't be read" in _missing_parts(store, 5)[0]

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(zipfile, "ZipFile", denied)
    with pytest.raises(PermissionError):
        _missing_parts(store, 5)


def test_a_locked_last_checkpoint_is_not_a_missing_one(tmp_path: Path, locked):
    """Maintenance writes no checkpoint of a log only because it may not read where the last one is."""
    file = tmp_path / "_delta_log" / "_last_checkpoint"
    file.parent.mkdir()
    assert _last_checkpoint(tmp_path) == -1
    file.write_text('{"version":3}')
    assert _last_checkpoint(tmp_path) == 3
    locked(file)
    with pytest.raises(PermissionError):
        _last_checkpoint(tmp_path)


def test_folders_that_vanish_while_they_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder that is removed between two looks is an empty one; one that may not be listed is an error of its own."""
    assert offsets.numbered(tmp_path / "gone") == set()
    assert offsets.committed_at(tmp_path, 0) is None
    (tmp_path / "file").touch()
    assert offsets.numbered(tmp_path / "file") == set()

    def denied(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", denied)
    with pytest.raises(StorageNotReadable):
        offsets.numbered(tmp_path)
