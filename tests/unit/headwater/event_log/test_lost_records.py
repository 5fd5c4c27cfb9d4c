"""Records that no commit of the event log names are missed by who asks whether all is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.delta_log.commits import commit_file, newest_version
from headwater.event_log import writer
from headwater.event_log.event import event_table
from headwater.event_log.lost_records import lost_records
from headwater.event_log.writer import EventLogWriter


def record(state: Path, *messages: str) -> None:
    """One commit a message."""
    with EventLogWriter(state, "orders", "orders", "u1") as log:
        for message in messages:
            log.emit("user_action", message)
            log.flush()


def take_newest_away(state: Path) -> None:
    table = event_table(state)
    newest = newest_version(table)
    assert newest is not None
    commit_file(table, newest).unlink()


def test_the_newest_commit_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its records are missed until others have come after them; a log that is whole, empty or compacted misses none."""
    assert lost_records(tmp_path) == []
    record(tmp_path, "one", "two")
    assert lost_records(tmp_path) == []
    take_newest_away(tmp_path)
    assert len(lost_records(tmp_path)) == 1
    record(tmp_path, "three")
    assert lost_records(tmp_path) == []
    monkeypatch.setattr(writer, "_COMPACT_ABOVE_FILES", 2)
    record(tmp_path, "four")
    assert len(list(event_table(tmp_path).glob("*.parquet"))) == 5
    assert lost_records(tmp_path) == []


def test_a_file_that_was_not_written_to_its_end(tmp_path: Path):
    """What a killed writer leaves half-way has no record that was ever there."""
    record(tmp_path, "one")
    (event_table(tmp_path) / "part-00000-x.parquet").write_bytes(b"PAR1")
    assert lost_records(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{"])
def test_a_log_that_cant_be_read(tmp_path: Path, text: str):
    """It is left to who reads it."""
    record(tmp_path, "one", "two")
    newest = newest_version(event_table(tmp_path))
    assert newest is not None
    commit_file(event_table(tmp_path), newest).write_text(text)
    assert lost_records(tmp_path) == []
