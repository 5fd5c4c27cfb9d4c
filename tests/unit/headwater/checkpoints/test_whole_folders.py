"""A folder is there whole or not at all, and durable before it is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.checkpoints.whole_folders import copy_durably, make_folder


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was made durable, in order."""
    names: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
    )
    return names


def test_a_copy_is_durable(tmp_path: Path, synced: list[str]):
    """Each file that is kept, and each folder after all that is in it."""
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    for name in ("a", "below/b", "left.crc"):
        (source / name).write_text(name)
    copy_durably(source, tmp_path / "copy", lambda file: file.suffix != ".crc")
    assert synced == [tmp_path.name, "a", "b", "copy", "below"]
    assert not (tmp_path / "copy" / "left.crc").exists()
    assert (tmp_path / "copy" / "below" / "b").read_text() == "below/b"


def test_a_folder_gets_its_name_last(tmp_path: Path, synced: list[str]):
    """It is filled and made durable under a hidden name; the name is durable, too. Where filling fails nothing is left."""

    def fill(making: Path) -> None:
        assert not (tmp_path / "epoch").exists()
        assert making.name.startswith(".epoch.")
        (making / "metadata").write_text("x")

    make_folder(tmp_path / "epoch", fill)  # type: ignore[arg-type]
    assert (tmp_path / "epoch" / "metadata").read_text() == "x"
    assert [name.startswith(".epoch.") for name in synced] == [True, False]

    def fail(_: object) -> None:
        raise OSError

    with pytest.raises(OSError):
        make_folder(tmp_path / "other", fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch"]
