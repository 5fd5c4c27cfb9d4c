"""Whether a place is free for a table that moves there."""

from __future__ import annotations

from pathlib import Path

from headwater.checkpoints.table_move import is_free


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
