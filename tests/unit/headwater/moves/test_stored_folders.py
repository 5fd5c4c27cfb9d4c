"""In which order the objects of a folder go whose copies are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.moves import stored_folders as module

ROWS = ["part-1.parquet", "day=2/part-2.parquet"]
COMMITS = [f"_delta_log/{version:020d}.json" for version in (1, 2)]
BEGINNING = [f"_delta_log/{0:020d}.json", f"_delta_log/{2:020d}.checkpoint.parquet"]
LAST = "_delta_log/_last_checkpoint"


def test_what_a_reader_begins_with_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From the first request on the old table can't be read any more, and its rows go last: no reader sees a part of it."""
    requests: list[list[str]] = []
    checked: list[int] = []
    before, after = tmp_path / "before", tmp_path / "after"
    monkeypatch.setattr(module, "contents", lambda _: dict.fromkeys([*ROWS, *COMMITS, LAST, *BEGINNING]))
    monkeypatch.setattr(module, "_different", lambda *_: [])
    monkeypatch.setattr(
        module,
        "remove_files",
        lambda files: requests.append([str(file.relative_to(before)) for file in files]),
    )
    monkeypatch.setattr(module, "_A_REQUEST", 3)
    places: Any = (before, after)
    module.carry_over(*places, lambda: checked.append(len(requests)))
    assert requests == [[LAST, *BEGINNING], [*COMMITS, ROWS[1]], [ROWS[0]]]
    assert checked == [0, 1, 2]
