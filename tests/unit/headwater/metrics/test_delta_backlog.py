"""Lag behind a Delta table, against real tables."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headwater.delta_log.versions import last_change, table_head
from headwater.errors import SourceUnreachable
from headwater.metrics.delta_backlog import delta_backlog, unread_since

from .conftest import delta_offset, write_rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three commits with 3, 2 and 1 rows."""
    path = tmp_path / "t"
    for values in ((1, 2, 3), (4, 5), (6,)):
        write_rows(path, *values)
    return path


def test_at_the_head(table):
    """One past the newest version is the place of a stream that has read everything."""
    backlog = delta_backlog(table, delta_offset(table, 3), {})
    assert (backlog.records, backlog.files, backlog.bytes, backlog.versions, backlog.moved) == (
        0,
        0,
        0,
        0,
        False,
    )
    assert backlog.seconds == 0


def test_behind_by_whole_versions(table):
    """Unread versions are counted in rows, files, bytes and commits, and aged by the oldest."""
    time.sleep(0.05)
    backlog = delta_backlog(table, delta_offset(table, 1), {})
    assert (backlog.records, backlog.files, backlog.versions, backlog.moved) == (3, 2, 2, True)
    assert backlog.bytes is not None
    assert backlog.bytes > 0
    assert backlog.seconds is not None
    assert 0.04 < backlog.seconds < 60


def test_within_a_version(table):
    """Files of a version up to the offset's index are read."""
    assert delta_backlog(table, delta_offset(table, 1, 0), {}).records == 1
    assert delta_backlog(table, delta_offset(table, 2, 0), {}).moved is False


def test_within_the_first_snapshot(table):
    """A stream that is still in its first snapshot has the rest of it and all later versions before it."""
    offset = delta_offset(table, 1, 0, starting=True)
    time.sleep(0.05)
    write_rows(table, 7)
    backlog = delta_backlog(table, offset, {})
    assert backlog.records == 4
    assert backlog.seconds is not None
    assert backlog.seconds > 0.04
    assert delta_backlog(table, delta_offset(table, 3, 3, starting=True), {}).moved is False


def test_before_the_first_run(table):
    """A stream that never ran has the whole table before it, or what its starting version leaves."""
    assert delta_backlog(table, None, {}).records == 6
    assert delta_backlog(table, None, {"startingVersion": "2"}).records == 1
    latest = delta_backlog(table, None, {"startingVersion": "latest"})
    assert (latest.records, latest.moved) == (0, None)


def test_commits_without_data_are_no_news(table):
    """Compaction and table properties leave a stream at its head, and the last change where it was."""
    from deltalake import DeltaTable

    before = delta_offset(table, 3)
    opened = DeltaTable(str(table))
    opened.optimize.compact()
    opened.alter.set_table_properties({"delta.appendOnly": "false"})
    head = table_head(table)
    assert head is not None
    assert head.version == 4
    assert delta_backlog(table, before, {}).moved is False
    commit = last_change(table, head.version)
    assert commit is not None
    assert commit.version == 2


def test_deletes_count_for_the_change_feed_only(table):
    """A commit that removes rows is news for a reader of changes; for others only added files count."""
    from deltalake import DeltaTable

    before = delta_offset(table, 3)
    DeltaTable(str(table)).delete("id = 5")
    assert delta_backlog(table, before, {"readChangeFeed": "true"}).moved is True
    assert delta_backlog(table, before, {"skipChangeCommits": "true"}).moved is False
    assert unread_since(table, 2).moved is True


def test_table_made_anew(table, tmp_path):
    """An offset of another table's id is not compared: the backlog is unknown, and there is news."""
    offset = {**delta_offset(table, 3), "reservoirId": "11111111-1111-1111-1111-111111111111"}
    backlog = delta_backlog(table, offset, {})
    assert backlog.moved is True
    assert "recreated" in (backlog.unknown or "")
    assert "no Delta table" in (delta_backlog(tmp_path / "none", None, {}).unknown or "")


def test_a_table_that_ends_before_what_was_read(table):
    """It was brought back from a copy: the backlog is unknown, and there is news. At its end, all was read."""
    from deltalake import DeltaTable

    ends = DeltaTable(str(table)).version()
    assert delta_backlog(table, delta_offset(table, ends + 1), {}).moved is False
    backlog = delta_backlog(table, delta_offset(table, ends + 2), {})
    assert backlog.moved is True
    assert "ends before that" in (backlog.unknown or "")


def test_cleaned_log(table):
    """Unread commits whose files are gone make the backlog unknown, never small."""
    from deltalake import DeltaTable

    offset = delta_offset(table, 1)
    DeltaTable(str(table)).create_checkpoint()
    for version in (0, 1):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    backlog = delta_backlog(table, offset, {})
    assert (backlog.records, backlog.moved) == (None, True)
    assert "gone" in (backlog.unknown or "")


def test_damaged_log(table):
    """A gap in the log is reported as such, by a typed error."""
    (table / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(SourceUnreachable, match="can't be read"):
        table_head(table)


def test_the_age_of_what_a_first_run_will_read(table):
    """It is that of the table's first commit; an empty table has nothing to read, however old."""
    log = table / "_delta_log" / f"{0:020d}.json"
    oldest = last_change(table, 0)
    assert oldest is not None
    backlog = delta_backlog(table, None, {})
    assert backlog.seconds == pytest.approx(time.time() - oldest.timestamp, abs=5)
    lines = [line for line in log.read_text().splitlines() if '"commitInfo"' not in line]
    log.write_text("\n".join(lines) + "\n")
    os.utime(log, (time.time() - 7200,) * 2)
    assert delta_backlog(table, None, {}).seconds == pytest.approx(7200, abs=60)
