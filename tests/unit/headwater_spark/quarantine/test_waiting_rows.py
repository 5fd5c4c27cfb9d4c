"""Rows of a file that is replayed, before its replay is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.headwater_spark.plain_rows import Frame
from tests.unit.headwater_spark.quarantine.test_held_rows import BATCH, RULES, three_rules_broken
from tests.unit.headwater_spark.recorded_writes import RecordedWrite

from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater_spark.quarantine.quarantine_table import QuarantineTable


def test_rows_of_a_file_that_is_replayed(monkeypatch, tmp_path: Path):
    """They wait under the replay's id for its end, and are of no batch: a batch that is repeated would replace them."""
    log: list[RecordedWrite] = []
    monkeypatch.setattr(Frame, "write", property(lambda rows: RecordedWrite(log, rows)), raising=False)
    marked: Any = three_rules_broken(monkeypatch)
    QuarantineTable(tmp_path, "f", 3, "u1", RULES).hold_pending(marked, BATCH, "r")
    (write,) = log
    assert (write.path, write.words["mode"]) == (str(tmp_path), "append")
    assert "txnAppId" not in write.options_given
    assert [(row["id"], row[c.STATUS], row[c.REPLAY_ID], row[c.BATCH]) for row in write.rows.rows] == [
        (1, str(RowStatus.PENDING), "r", None),
        (3, str(RowStatus.PENDING), "r", None),
    ]
