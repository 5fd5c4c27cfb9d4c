"""Position against table: a lost position is detected from what was recorded of it, and a damaged newest commit by its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.unit.headwater.preflight.started import started

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.delta_log.commits import commit_file
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import (
    checkpoint_was_lost,
    commit_is_damaged,
    query_id_was_changed,
    table_was_dropped,
    table_was_recreated,
)


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


@pytest.mark.parametrize(
    ("sent", "left", "conditions"),
    [(True, False, ["CHECKPOINT_LOST"]), (False, False, []), (True, True, [])],
)
def test_the_whole_folder_of_a_sinks_flow_is_gone(
    tmp_path: Path, sent: bool, left: bool, conditions: list[str]
):
    """With its state all is forgotten, but for the event log; a flow of which a state is left, and nothing else, was begun anew."""
    checkpoint = FlowCheckpoint(tmp_path / "outbox" / "send")
    if left:
        checkpoint.write_state(FlowState())
    start = FlowStart(
        "p", "send", "outbox", checkpoint, FlowState(), None, "foreach_batch:outbox", is_sink=True, sent_before=lambda: sent
    )  # fmt: skip
    assert [damage.condition for damage in checkpoint_was_lost(start)] == conditions


def of_table(tmp_path: Path) -> FlowStart:
    """The start of a flow into a table of three commits."""
    table = tmp_path / "orders"
    for number in range(3):
        write_deltalake(str(table), pa.table({"id": [number]}), mode="append")
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "orders" / "orders")
    return FlowStart("p", "orders", "orders", checkpoint, FlowState(), table, "id")


@pytest.mark.parametrize("there", [False, True])
def test_a_storage_that_two_deployments_share(tmp_path: Path, there: bool):
    """The message says where the last run wrote to, and a full refresh, which would take the other's position, comes last."""
    start = of_table(tmp_path)
    start.checkpoint.write_state(FlowState(sink_id="of production", table="s3://production/orders"))
    (start.folder / "commits").mkdir(parents=True)
    state = FlowState(sink_id="of production", table="s3://production/orders")
    start = replace(
        start, state=state, sink_id="id" if there else None, table=start.table if there else tmp_path / "none"
    )
    (damage,) = [*table_was_dropped(start), *table_was_recreated(start)]
    assert damage.condition == ("TABLE_REPLACED" if there else "TABLE_GONE")
    assert "The last run wrote to s3://production/orders." in damage.error.what
    assert damage.error.remedy.startswith("Run it with the warehouse of the last run.")
    same = replace(start, state=replace(state, table=str(start.table)))
    (damage,) = [*table_was_dropped(same), *table_was_recreated(same)]
    assert damage.error.remedy.startswith("Refill the table")


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


@pytest.mark.parametrize(
    ("number", "of"), [(3, 2), (2, 1), (3, 1)], ids=["the next", "in its place", "an older one"]
)
def test_a_commit_that_is_a_copy(tmp_path: Path, number: int, of: int):
    """Whoever copies objects by hand: a stream would read its rows twice, or miss those that were there."""
    start = of_table(tmp_path)
    assert start.table is not None
    commit_file(start.table, number).write_bytes(commit_file(start.table, of).read_bytes())
    (damage,) = commit_is_damaged(start)
    assert (damage.condition, damage.blocks) == ("TABLE_LOG_DAMAGED", True)
    assert f"version {number}, is damaged: it is a copy of version {of}" in damage.error.what


def test_readers_take_an_empty_commit_for_one_without_rows(tmp_path: Path):
    """Why an empty one is looked for: delta-rs opens the table without an error, and without the rows."""
    start = of_table(tmp_path)
    assert start.table is not None
    commit_file(start.table, 2).write_bytes(b"")
    table = DeltaTable(str(start.table))
    assert (table.version(), len(table.file_uris())) == (2, 2)


def test_an_id_that_can_not_be_read_is_no_other_one(tmp_path: Path):
    """The check of damaged files says so; this one neither fails nor takes the query for another."""
    start = started(tmp_path, [0])
    for text in ("{", "[]", ""):
        (start.folder / "metadata").write_text(text)
        assert list(query_id_was_changed(start)) == []
