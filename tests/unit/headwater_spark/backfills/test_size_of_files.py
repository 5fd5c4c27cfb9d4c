"""The size of what a backfill would read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.plain_rows import FUNCTIONS, Frame

from headwater_spark.backfills import event_slice
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


@pytest.mark.parametrize(
    ("inside", "size"), [({"a": [True, False], "b": [False, False]}, (1, 10, 10.0)), ({"a": [False], "b": [None]}, (0, 0, 20.0)), ({}, (0, 0, 0.0))]
)  # fmt: skip
def test_the_part_of_a_table_in_a_range(
    monkeypatch: pytest.MonkeyPatch, inside: dict[str, list[bool | None]], size: tuple[int, int, float]
):
    """Its rows, the bytes of the files that have any of them, and what a row of the table takes."""
    sizes = {"a": 10, "b": 30}
    rows = [
        {"_metadata": {"file_path": file, "file_size": sizes[file]}, "in": one}
        for file, values in inside.items()
        for one in values
    ]
    count = FUNCTIONS.count
    plain = SimpleNamespace(**{**vars(FUNCTIONS), "count": lambda _: count(FUNCTIONS.lit(1))})
    monkeypatch.setattr(event_slice, "F", plain)
    reader = SimpleNamespace(load=lambda _: Frame(rows, ["_metadata", "in"]))
    session: Any = SimpleNamespace(read=SimpleNamespace(format=lambda _: reader))
    seen = event_slice.slice_size(session, Path(), "in", None)
    assert tuple(vars(seen).values()) == size
