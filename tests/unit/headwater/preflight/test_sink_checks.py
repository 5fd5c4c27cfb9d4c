"""Position against table: a lost position is detected from what was recorded of it, and a damaged newest commit by its end."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.delta_log.commits import commit_file
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import checkpoint_was_lost, commit_is_damaged


@pytest.mark.parametrize(("recorded", "conditions"), [(3, ["CHECKPOINT_LOST"]), (None, [])])
def test_both_logs_of_a_sinks_flow_are_gone(tmp_path: Path, recorded: int | None, conditions: list[str]):
    """All rows would be sent again; a flow that never had a batch has lost nothing."""
    checkpoint = FlowCheckpoint(tmp_path / "outbox" / "send")
    state = FlowState(sink_id="kafka:outbox", completed=True)
    checkpoint.write_state(state)
    checkpoint.epoch_folder(0).mkdir()
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"x"}')
    start = FlowStart(
        "p",
        "send",
        "outbox",
        checkpoint,
        state,
        None,
        "kafka:outbox",
        is_sink=True,
        last_recorded=lambda: recorded,
    )
    assert [damage.condition for damage in checkpoint_was_lost(start)] == conditions


def of_table(tmp_path: Path) -> FlowStart:
    """The start of a flow into a table of three commits."""
    table = tmp_path / "orders"
    for number in range(3):
        write_deltalake(str(table), pa.table({"id": [number]}), mode="append")
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "orders" / "orders")
    return FlowStart("p", "orders", "orders", checkpoint, FlowState(), table, "id")


def test_a_whole_commit_is_no_finding(tmp_path: Path):
    """Nor is a table that is not there yet."""
    assert list(commit_is_damaged(of_table(tmp_path))) == []
    assert list(commit_is_damaged(of_table(tmp_path / "a"))) == []


@pytest.mark.parametrize(
    ("share", "filler"), [(0, b""), (0, b"\n"), (0.2, b""), (0.9, b""), (0, b"\0" * 600), (1, b"\n[]")]
)
def test_a_commit_without_its_end(tmp_path: Path, share: float, filler: bytes):
    """Empty, blank, cut, or full of zeros, as power failures leave files: readers may take it for a commit without rows."""
    start = of_table(tmp_path)
    assert start.table is not None
    file = commit_file(start.table, 2)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)] + filler)
    (damage,) = commit_is_damaged(start)
    assert (damage.condition, damage.blocks, damage.mends_itself) == ("TABLE_LOG_DAMAGED", True, False)
    assert file.name in damage.error.remedy
    for checks in (CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS):
        assert commit_is_damaged in checks


def test_readers_take_an_empty_commit_for_one_without_rows(tmp_path: Path):
    """Why an empty one is looked for: delta-rs opens the table without an error, and without the rows."""
    start = of_table(tmp_path)
    assert start.table is not None
    commit_file(start.table, 2).write_bytes(b"")
    table = DeltaTable(str(start.table))
    assert (table.version(), len(table.file_uris())) == (2, 2)
