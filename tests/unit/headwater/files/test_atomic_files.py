"""In which order files and folders become durable."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.checkpoints.log_entries import write_entry
from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.checkpoints.whole_folders import copy_durably, make_folder
from headwater.files.atomic_files import write_atomically


def a_file(folder: Path) -> None:
    write_atomically(folder / "flow.json", "{}")


def a_folder(folder: Path) -> None:
    make_folder(folder / "3", lambda made: None)


def a_record(folder: Path) -> None:
    pending = PendingReplacement(folder.name, "p.f@0", "true", "{}", {})
    with pending.written_down(folder.parent.parent):
        pass


@pytest.mark.parametrize("made", [a_file, a_folder, a_record])
def test_what_has_its_name_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], None]
):
    """What it holds is synchronised under a hidden name, and after the rename the folder that has the name."""
    folder = tmp_path / "backfills" / "orders"
    folder.mkdir(parents=True)
    synchronised: list[tuple[str, list[str]]] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        visible = [one.name for one in folder.iterdir() if not one.name.startswith(".")]
        synchronised.append((path.name[:1] if path != folder else "the folder", visible))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    made(folder)
    (name,) = (one.name for one in folder.iterdir())
    assert synchronised == [(".", []), ("the folder", [name])]


def a_new_file(root: Path) -> None:
    write_atomically(root / "checkpoints" / "orders" / "flow.json", "{}")


def a_new_epoch(root: Path) -> None:
    make_folder(
        root / "checkpoints" / "orders" / "1", lambda made: write_entry(made / "sources" / "0" / "0", "v1")
    )


def a_new_record(root: Path) -> None:
    a_record(root / "pipelines" / "orders")


def a_copy(root: Path) -> None:
    original = root.with_name("original")
    (original / "deep" / "er").mkdir(parents=True)
    (original / "deep" / "er" / "file").write_text("v1")
    copy_durably(original, root / "storage" / "copy")


@pytest.mark.parametrize("made", [a_new_file, a_new_epoch, a_new_record, a_copy])
def test_folders_that_were_made_for_it_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[Path], None]
):
    """The name of each is in the one above it, which is synchronised after that: a power cut takes none of them away."""
    root = tmp_path / "root"
    root.mkdir()
    durable: dict[int, set[str]] = {}
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            durable[os.fstat(descriptor).st_ino] = set(os.listdir(descriptor))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    made(root)
    for folder, below, files in os.walk(root):
        assert {*below, *files} - {".lock"} <= durable.get(Path(folder).stat().st_ino, set()), folder
