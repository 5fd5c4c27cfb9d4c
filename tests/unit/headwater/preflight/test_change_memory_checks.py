"""What AUTO CDC remembers beside a table is missed by all flows of the table where it is gone, older, or damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from headwater.checkpoints.layout import FlowCheckpoint, FlowState, remembered_changes
from headwater.delta_log.commits import commit_file
from headwater.preflight.change_memory_checks import (
    change_memory_files_are_gone,
    change_memory_is_damaged,
    change_memory_was_lost,
)
from headwater.preflight.flow_start import FlowStart
from headwater.storage.walking import remove_tree

FLOWS = ("first", "second")
LAST = 3


def start_of(storage: Path, flow: str = "first") -> FlowStart:
    """The start of one of two flows of changes into ``t``; both had left the memory at its version 3."""
    checkpoint = FlowCheckpoint(storage / "checkpoints" / "t" / flow)
    if not checkpoint.state_file.exists():
        checkpoint.write_state(FlowState(change_memory=LAST))
    state = checkpoint.read_state()
    assert state is not None
    return FlowStart("p", flow, "t", checkpoint, state, storage / "table", "id", declared=FLOWS)


def found(start: FlowStart) -> list[str]:
    """What the checks find."""
    return [
        damage.condition
        for check in (change_memory_is_damaged, change_memory_was_lost, change_memory_files_are_gone)
        for damage in check(start)
    ]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """The memory of ``t``, with four commits."""
    place = remembered_changes(tmp_path, "t")
    assert isinstance(place, Path)
    for number in range(LAST + 1):
        write_deltalake(str(place), pa.table({"id": [number]}), mode="append")
    return place


def test_as_it_was_left(tmp_path: Path, memory: Path):
    """Nothing is found, nor where a killed update has written more, nor of a flow that never had one."""
    assert found(start_of(tmp_path)) == []
    write_deltalake(str(memory), pa.table({"id": [9]}), mode="append")
    assert found(start_of(tmp_path)) == []
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "other" / "other")
    assert found(FlowStart("p", "other", "other", checkpoint, FlowState(), tmp_path / "o", "id")) == []


@pytest.mark.parametrize("harm", [remove_tree, lambda memory: commit_file(memory, LAST).unlink()])
def test_gone_or_older(tmp_path: Path, memory: Path, harm):
    """Each flow of the table misses it, until one repair gives it up for all."""
    starts = [start_of(tmp_path, flow) for flow in FLOWS]
    harm(memory)
    assert [found(start) for start in starts] == [["CHANGE_MEMORY_LOST"]] * 2
    (damage,) = change_memory_was_lost(starts[0])
    assert "--full-refresh t" in str(damage.error.remedy)
    assert damage.mend is not None
    damage.mend()
    assert [found(start_of(tmp_path, flow)) for flow in FLOWS] == [[], []]


@pytest.mark.parametrize("number", [0, LAST])
def test_data_files_that_are_gone(tmp_path: Path, memory: Path, number: int):
    """Those of the newest commit are missed by each start, the others where all are looked at; a batch with other keys would pass them over."""
    start = start_of(tmp_path)
    (file,) = (
        memory / action["add"]["path"]
        for line in commit_file(memory, number).read_text().splitlines()
        if "add" in (action := json.loads(line))
    )
    file.unlink()
    assert found(start) == (["CHANGE_MEMORY_LOST"] if number == LAST else [])
    assert found(replace(start, deep=True)) == ["CHANGE_MEMORY_LOST"]
    (damage,) = change_memory_files_are_gone(replace(start, deep=True))
    assert file.name in damage.error.what
    assert not damage.mends_itself


@pytest.mark.parametrize(
    ("counts", "about", "missed"),
    [
        ({"tombstones": 1}, {}, True),
        ({"tombstones": 0, "superseded": 1}, {}, False),
        ({"tombstones": 1}, {"flow": "second"}, False),
        ({"tombstones": 1}, {"epoch": 1}, False),
    ],
)
def test_a_killed_update_had_one(tmp_path: Path, counts: dict[str, int], about: dict[str, Any], missed: bool):
    """Its commits say that deletes were remembered, before the flow's state does; given up, they are not missed again."""
    metadata = {"pipeline": "p", "flow": "first", "epoch": 0, "changes": counts, **about}
    info = CommitProperties(custom_metadata={"userMetadata": json.dumps(metadata)})
    write_deltalake(str(tmp_path / "table"), pa.table({"id": [1]}), commit_properties=info)
    for flow in FLOWS:
        FlowCheckpoint(tmp_path / "checkpoints" / "t" / flow).write_state(FlowState())
    assert found(start_of(tmp_path)) == (["CHANGE_MEMORY_LOST"] if missed else [])
    if missed:
        (damage,) = change_memory_was_lost(start_of(tmp_path))
        assert damage.mend is not None
        damage.mend()
        assert found(start_of(tmp_path)) == []


@pytest.mark.parametrize(
    ("harm", "condition"),
    [
        (lambda memory: commit_file(memory, 1).unlink(), "TABLE_LOG_HOLE"),
        (lambda memory: commit_file(memory, LAST).write_text(""), "TABLE_LOG_DAMAGED"),
    ],
)
def test_damaged(tmp_path: Path, memory: Path, harm, condition: str):
    """Its log is held to what the table's log is held to."""
    start = start_of(tmp_path)
    harm(memory)
    assert found(start) == [condition]
