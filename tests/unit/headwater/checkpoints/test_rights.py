"""Files keep their permissions and links when they are written; a missing permission is distinguished from damage."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater.checkpoints.conditions import FlowStateDamaged, StorageNotReadable
from headwater.checkpoints.flow_identity import former_names, names_file
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.checkpoints.offsets import read_offsets
from headwater.checkpoints.rights import denied, not_readable
from headwater.checkpoints.table_move import journal_file, unfinished_move
from headwater.errors import InvalidSpec, StorageFailed
from headwater.files.atomic_files import write_atomically
from headwater.graph.manifest import read_manifest
from headwater.preflight.checks import examine
from headwater.preflight.flow_start import FlowStart

NOBODY = 65534


@pytest.fixture
def storage() -> Iterator[Path]:
    """A folder that every user may enter (pytest's own are for one user alone)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def another_user() -> Iterator[None]:
    """Be a user without rights inside the block; who is none of root's has none on files of mode 0 anyhow."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def umask() -> Iterator[None]:
    """The umask of most systems."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """The rights of a file."""
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o666, 0o444])
def test_the_old_mode_stays(tmp_path: Path, umask: None, before: int):
    """Who could read the file can read it after it was written, and nobody else can."""
    file = tmp_path / "manifest.json"
    file.write_text("old")
    file.chmod(before)
    write_atomically(file, "new")
    assert (file.read_text(), mode(file)) == ("new", before)


def test_a_first_file_has_what_the_umask_leaves(tmp_path: Path, umask: None):
    """As any program's files, not those of one user alone."""
    write_atomically(tmp_path / "a" / "manifest.json", "new")
    assert mode(tmp_path / "a" / "manifest.json") == 0o644
    os.umask(0o002)
    write_atomically(tmp_path / "b.json", "new")
    assert mode(tmp_path / "b.json") == 0o664


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_roots_writing_does_not_take_the_file(tmp_path: Path):
    """The image's user still owns what a command of root's has rewritten."""
    file = tmp_path / "flow.json"
    file.write_text("old")
    file.chmod(0o600)
    os.chown(file, 50000, 50001)
    write_atomically(file, "new")
    assert (file.stat().st_uid, file.stat().st_gid, mode(file)) == (50000, 50001, 0o600)


def test_a_link_stays_a_link(tmp_path: Path):
    """Its target is replaced, beside itself; a link into nowhere makes the target."""
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    target, link = tmp_path / "real" / "manifest.json", tmp_path / "links" / "manifest.json"
    link.symlink_to("../real/manifest.json")
    for text in ("first", "second"):
        write_atomically(link, text)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert target.read_text() == text
    assert [path.name for path in (tmp_path / "links").iterdir()] == ["manifest.json"]
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["manifest.json"]


def test_no_right_to_write(storage: Path):
    """The error names the file, the user and whose folder it is; the old text stands."""
    file = storage / "flow.json"
    file.write_text("old")
    storage.chmod(0o555)
    with another_user(), pytest.raises(StorageFailed, match=r"flow\.json can't be written") as caught:
        write_atomically(file, "new")
    storage.chmod(0o755)
    assert "belongs to user" in caught.value.remedy
    assert file.read_text() == "old"


def test_no_right_to_read_is_no_damage(storage: Path):
    """Every file of the state: the advice is about rights, never to move it aside or to restore it."""
    checkpoint = flow_checkpoint(storage, "t", "f")
    checkpoint.write_state(FlowState(epoch=3))
    offsets = checkpoint.epoch_folder(3) / "offsets" / "0"
    manifest = storage / "manifest.json"
    for file in (offsets, names_file(storage), journal_file(storage), manifest):
        write_atomically(file, "{}")
    for file in (checkpoint.state_file, offsets, names_file(storage), journal_file(storage), manifest):
        file.chmod(0)
    readers = (
        checkpoint.read_state,
        lambda: read_offsets(checkpoint.epoch_folder(3), 0),
        lambda: former_names(storage),
        lambda: unfinished_move(storage),
    )
    for read in readers:
        with another_user(), pytest.raises(StorageNotReadable) as caught:
            read()
        assert "mode 0000" in caught.value.what
        assert "not damaged: leave it where it is" in caught.value.remedy
    with another_user(), pytest.raises(InvalidSpec, match="no right"):
        read_manifest(manifest)


def test_damage_is_still_damage(storage: Path):
    """What can be read and makes no sense keeps its own condition."""
    checkpoint = flow_checkpoint(storage, "t", "f")
    write_atomically(checkpoint.state_file, "{")
    with pytest.raises(FlowStateDamaged):
        checkpoint.read_state()


@pytest.mark.parametrize(
    "part", [".", "0", "0/offsets", "0/commits", "0/sources", "0/offsets/7", "0/metadata"]
)
def test_the_checks_before_a_start_name_it_alone(storage: Path, part: str):
    """A folder or file that can't be read would look lost or damaged to the other checks; they are not asked."""
    checkpoint = flow_checkpoint(storage, "t", "f")
    epoch = checkpoint.epoch_folder(0)
    for name in ("offsets/7", "commits/7", "sources/0/0", "metadata"):
        write_atomically(epoch / name, "v1\n{}")
    start = FlowStart("p", "f", "t", checkpoint, FlowState(), None, None)
    hidden = checkpoint.folder / part
    before = mode(hidden)
    hidden.chmod(0)
    try:
        with another_user():
            (damage,) = examine(start)
    finally:
        hidden.chmod(before)
    assert damage.condition == "STORAGE_NOT_READABLE"
    assert damage.blocks
    assert not damage.repairs
    assert "STORAGE_NOT_READABLE" not in {damage.condition for damage in examine(start)}


def test_a_right_that_is_missing_anywhere(storage: Path):
    """Where nothing else is known, the folder that shuts one out is named, and whose it is; or the file, or nothing."""
    file = storage / "closed" / "deep" / "file"
    file.parent.mkdir(parents=True)
    (storage / "closed").chmod(0)
    with another_user(), pytest.raises(PermissionError) as raised:
        file.read_text()
    with another_user():
        error = denied(raised.value)
        assert f"has no right to {storage / 'closed'} (the folder belongs to user" in error.what
        assert error.where == str(file)
    assert "has no right to a file." in denied(PermissionError("a library says so")).what
    (storage / "closed").chmod(0o700)


def test_a_file_where_a_folder_should_be(tmp_path: Path):
    """It has to go: nobody is asked to leave it where it is."""
    checkpoint = flow_checkpoint(tmp_path, "orders", "orders")
    checkpoint.folder.parent.parent.mkdir(parents=True)
    Path(str(checkpoint.folder.parent)).write_text("x")
    with pytest.raises(StorageNotReadable) as raised:
        checkpoint.read_state()
    assert "A file lies where a folder is needed. Move it away" in raised.value.remedy
    assert "leave it" not in raised.value.remedy
    error = denied(IsADirectoryError(21, "Is a directory", "/x/update.lease"))
    assert (error.what, error.where) == ("A folder lies where a file is needed.", "/x/update.lease")
    assert "Move it away" in error.remedy


def test_what_keeps_a_file_from_being_read_is_named(storage: Path):
    """The first folder that this user can't look into, where there is one, else the file itself."""
    folder = storage / "a" / "b"
    folder.mkdir(parents=True)
    file = folder / "c"
    error = not_readable(file, "what is there", OSError(5, "Input/output error"))
    assert error.where == str(file)
    assert error.what == f"It is not known what is there: Input/output error: {file}."
    (storage / "a").chmod(0)
    try:
        with another_user():
            error = not_readable(file, "what is there", PermissionError(13, "Permission denied"))
    finally:
        (storage / "a").chmod(0o755)
    assert error.where == str(storage / "a")
    assert "mode 0000" in error.what
