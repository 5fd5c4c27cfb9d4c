"""In which order files and folders become durable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.checkpoints.whole_folders import make_folder
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
