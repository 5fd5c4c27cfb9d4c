"""A log that can't be there is no log without records."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.event_log.conditions import EventLogUnreadable
from headwater.event_log.event import event_table
from headwater.event_log.table_query import query


def test_a_file_in_its_place(tmp_path: Path):
    """Nothing is there before the first update; a file is not what an update would have left."""
    assert query(tmp_path, "select * from events") == []
    table = event_table(tmp_path)
    for place in (table.parent, table):
        assert isinstance(place, Path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")
        with pytest.raises(EventLogUnreadable, match="a file lies where its folder should be"):
            query(tmp_path, "select * from events")
        place.unlink()
