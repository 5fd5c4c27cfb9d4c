"""How long records stay, what stays whatever its age, and that upkeep costs an update nothing on most days."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import MagicMock

import pytest
from deltalake import DeltaTable

from headwater.event_log import details, reader, retention, writer
from headwater.event_log.details import FlowStatus, UpdateState
from headwater.event_log.event import event_table
from headwater.event_log.retention import keep_event_log, maintain_event_log
from headwater.event_log.writer import EventLogWriter


def write_update(folder, update, batches=()):
    with EventLogWriter(folder, "orders", "Orders", update) as log:
        log.emit("create_update", "asked for", details=details.create_update())
        for flow, epoch, batch in batches:
            body = details.flow_progress(FlowStatus.RUNNING, metrics={"num_output_rows": 1})
            log.emit("flow_progress", "", flow=flow, dataset=flow, epoch=epoch, batch_id=batch, details=body)
        log.emit("update_progress", "ended", details=details.update_progress(UpdateState.COMPLETED))


def later(days):
    return datetime.now(UTC) + timedelta(days=days)


def test_old_records_go_and_last_batches_stay(tmp_path):
    """Past the retention all goes but the newest update and the record of each flow and epoch's last batch."""
    write_update(tmp_path, "u1", [("a", 0, 0), ("a", 0, 1), ("a", 1, 0), ("b", 0, 4)])
    write_update(tmp_path, "u2", [("a", 1, 1)])
    before = reader.last_batches(tmp_path)
    assert maintain_event_log(tmp_path, 30, now=later(10)).deleted == 0
    assert maintain_event_log(tmp_path, 30, now=later(31)).deleted == 4
    assert reader.last_batches(tmp_path) == before == {("a", 0): 1, ("a", 1): 1, ("b", 0): 4}
    assert [u.update_id for u in reader.updates(tmp_path)] == ["u2"]
    assert len(reader.events(tmp_path, update_id="u2")) == 3
    version = DeltaTable(str(event_table(tmp_path))).version()
    assert maintain_event_log(tmp_path, 30, now=later(32)).deleted == 0
    assert DeltaTable(str(event_table(tmp_path))).version() == version


def test_no_retention_keeps_everything(tmp_path):
    """With None nothing is ever deleted."""
    write_update(tmp_path, "u1")
    write_update(tmp_path, "u2")
    assert maintain_event_log(tmp_path, None, now=later(9999)).deleted == 0
    assert len(reader.events(tmp_path)) == 4


def test_upkeep_is_due_once_a_day(tmp_path):
    """Nothing is done for a new log, nor twice in a day; after a day it is."""
    assert keep_event_log(tmp_path, 30) is None
    write_update(tmp_path, "u1")
    assert keep_event_log(tmp_path, 30) is None
    mark = tmp_path / "system" / "events.maintained"
    yesterday = time.time() - 2 * 86400
    os.utime(mark, (yesterday, yesterday))
    done = keep_event_log(tmp_path, 30)
    assert done is not None
    assert keep_event_log(tmp_path, 30) is None
    assert len(reader.events(tmp_path)) == 2


def test_a_failure_of_upkeep_is_told_and_goes_on(tmp_path, caplog):
    """What can't be maintained is logged as a warning; the update is none the worse."""
    write_update(tmp_path, "u1")
    keep_event_log(tmp_path, 30)
    mark = tmp_path / "system" / "events.maintained"
    os.utime(mark, (0, 0))
    for file in event_table(tmp_path).joinpath("_delta_log").iterdir():
        file.write_text("no log")
    assert keep_event_log(tmp_path, 30) is None
    assert "could not be maintained" in caplog.text


@pytest.mark.parametrize("files", [60])
def test_many_small_files_become_few(tmp_path, files):
    """A log of many appends is compacted when a writer closes; not a record is lost."""
    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        for number in range(files):
            log.emit("user_action", f"{number}")
            log.flush()
    assert len(DeltaTable(str(event_table(tmp_path))).file_uris()) < 5
    assert [e["message"] for e in reader.events(tmp_path)] == [str(n) for n in range(files)]


def test_upkeep_of_the_tables_files(tmp_path, monkeypatch):
    """A checkpoint first, then what it makes needless: commits by the table's own retention, and files, which do go."""
    table = MagicMock(vacuum=MagicMock(return_value=["a", "b"]))
    monkeypatch.setattr(retention, "delta_table", lambda _: table)
    assert maintain_event_log(tmp_path, None).removed == 2
    assert [call[0] for call in table.method_calls] == ["create_checkpoint", "cleanup_metadata", "vacuum"]
    assert table.vacuum.call_args.kwargs["dry_run"] is False


def test_a_log_that_can_not_be_compacted(tmp_path, monkeypatch, caplog):
    """It is said when the writer closes, and all that was written is there."""

    def fails(_):
        raise OSError("no right to list")

    with EventLogWriter(tmp_path, "orders", "Orders", "u1") as log:
        log.emit("user_action", "one")
        log.flush()
        monkeypatch.setattr(writer, "delta_table", fails)
        log._compact()
        monkeypatch.undo()
    assert "The event log could not be compacted" in caplog.text
    assert [each["message"] for each in reader.events(tmp_path)] == ["one"]
