"""The size of what a backfill would read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater_spark.backfills.range_rows import _sizes


def test_files_that_vanish_count_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also one that is removed after it was seen to be there."""
    (tmp_path / "a").write_text("1234")
    (tmp_path / "b").write_text("12")
    stat = Path.stat
    looks = []

    def vanishing(self, **given):
        status = stat(self, **given)
        if self.name == "b":
            looks.append(self)
            self.unlink()
        return status

    assert _sizes([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "no")]) == 6
    monkeypatch.setattr(Path, "stat", vanishing)
    assert _sizes([str(tmp_path / "a"), str(tmp_path / "b")]) == 6
    assert len(looks) == 1
    assert _sizes([str(tmp_path / "a"), str(tmp_path / "b")]) == 4
