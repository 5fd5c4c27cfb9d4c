"""Whether a place is free for a table that moves there."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoints.table_move import is_free
from headwater.files.atomic_files import write_atomically


def test_what_lies_in_a_place(tmp_path: Path):
    """Nothing, or the mark that a move has left; a file, or anything else in the folder, is somebody's."""
    assert is_free(tmp_path / "none")
    assert is_free(tmp_path)
    (tmp_path / "moved.json").write_text("{}")
    assert is_free(tmp_path)
    assert not is_free(tmp_path, ())
    (tmp_path / "flow").mkdir()
    assert not is_free(tmp_path)
    assert not is_free(tmp_path / "moved.json")


def test_what_a_kill_leaves_of_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A mark that was being written when its process died keeps the name from nobody; another hidden file is somebody's."""
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    monkeypatch.setattr(Path, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_atomically(tmp_path / "moved.json", "{}")
    assert [path.name.startswith(".moved.json.") for path in tmp_path.iterdir()] == [True]
    assert is_free(tmp_path)
    (tmp_path / ".notes.json.0123456789ab").write_text("")
    assert not is_free(tmp_path)
