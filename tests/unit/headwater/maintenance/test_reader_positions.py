"""Where the offset of a stream over a table stands."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.maintenance.reader_positions import ReaderPosition, _change_readers, _of_offset


def test_a_first_read_goes_on_behind_the_version_that_it_began_with():
    """While the whole table is read, its version is needed as a whole and the commits behind it; afterwards, from the version on."""
    whole = {"reservoirVersion": 4, "isStartingVersion": True}
    assert _of_offset("r", whole) == ReaderPosition("r", 5, snapshot=4)
    assert _of_offset("r", {**whole, "isStartingVersion": False}) == ReaderPosition("r", 4)


def test_a_reader_of_changes_that_has_begun_with_the_whole_table(tmp_path: Path):
    """It needs the version that it reads as a whole, and the commits behind that one."""
    begun = {"table_id": "id", "start_version": 0, "end_version": 3, "snapshot": True}
    (tmp_path / "report.json").write_text(json.dumps({"begun": begun, "position": None}))
    (position,) = _change_readers(tmp_path, "id")
    assert (position.version, position.snapshot) == (4, 3)
