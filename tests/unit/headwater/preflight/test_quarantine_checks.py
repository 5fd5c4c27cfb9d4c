"""A quarantine that is gone is missed by all flows of its table, also after an update that was killed before it said that there was one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.checks import CHECKS
from headwater.preflight.damage import Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.quarantine_checks import (
    quarantine_files_are_gone,
    quarantine_log_is_damaged,
    quarantine_was_lost,
)

FLOWS = ("first", "second")


def commit(table: Path, flow: str = "first", *, epoch: int = 0, pipeline: str = "p", **counts: Any) -> None:
    """A commit as a flow makes it: with the counts of its batch."""
    about = {"pipeline": pipeline, "flow": flow, "epoch": epoch, "quality": {"rows": 2, **counts}}
    info = CommitProperties(custom_metadata={"userMetadata": json.dumps(about)})
    write_deltalake(str(table), pa.table({"id": [1]}), mode="append", commit_properties=info)


def start_of(root: Path, flow: str = "first", *, state: FlowState | None = None) -> FlowStart:
    """The start of one of two flows into the table ``t``, which is there; its quarantine is not."""
    table, checkpoint = root / "t", FlowCheckpoint(root / "checkpoints" / "t" / flow)
    if state is not None:
        checkpoint.write_state(state)
    table_id = str(DeltaTable(str(table)).metadata().id)
    stored = checkpoint.read_state() or FlowState()
    return FlowStart(
        "p",
        flow,
        "t",
        checkpoint,
        stored,
        table,
        table_id,
        declared=FLOWS,
        quarantine=root / "t_quarantine",
    )


def found(start: FlowStart) -> list[str]:
    """What the check finds."""
    return [damage.condition for damage in quarantine_was_lost(start)]


def test_one_repair_gives_it_up_for_all_flows(tmp_path: Path):
    """Each flow of the table misses it; given up by one, none does."""
    commit(tmp_path / "t")
    starts = [start_of(tmp_path, flow, state=FlowState(has_quarantine=True)) for flow in FLOWS]
    assert [found(start) for start in starts] == [["QUARANTINE_GONE"]] * 2
    (damage,) = quarantine_was_lost(starts[0])
    assert damage.mend is not None
    damage.mend()
    assert [found(start_of(tmp_path, flow)) for flow in FLOWS] == [[], []]


def test_it_is_not_given_up_unasked(tmp_path: Path):
    """Rows that may be needed: the flow does not start, and somebody has to decide."""
    commit(tmp_path / "t")
    (damage,) = quarantine_was_lost(start_of(tmp_path, state=FlowState(has_quarantine=True)))
    assert (damage.mends_itself, damage.blocks) == (False, True)
    assert damage.repairs == (Repair.FULL_REFRESH, Repair.MEND)


@pytest.mark.parametrize(
    ("recorded", "missed"), [(2, True), (1, False), (0, False), (None, False)]
)  # an older Headwater recorded no version
def test_an_older_copy(tmp_path: Path, recorded: int | None, missed: bool):
    """It lacks rows that were kept out since; each flow of the table misses them until one repair gives them up."""
    commit(tmp_path / "t")
    for number in range(2):
        write_deltalake(str(tmp_path / "t_quarantine"), pa.table({"id": [number]}), mode="append")
    state = FlowState(has_quarantine=True, quarantine_version=recorded)
    starts = [start_of(tmp_path, flow, state=state) for flow in FLOWS]
    assert [found(start) for start in starts] == [["QUARANTINE_GONE"] if missed else []] * 2
    if missed:
        (damage,) = quarantine_was_lost(starts[0])
        assert "ends at version 1" in str(damage.error)
        assert damage.mend is not None
        damage.mend()
        assert [found(start_of(tmp_path, flow)) for flow in FLOWS] == [[], []]


def test_a_killed_update_had_one(tmp_path: Path):
    """Its commits say so, before the flow's state does; given up, it is not missed again."""
    commit(tmp_path / "t", quarantined=0)
    commit(tmp_path / "t", quarantined=1)
    start = start_of(tmp_path, state=FlowState())
    (damage,) = quarantine_was_lost(start)
    assert damage.condition == "QUARANTINE_GONE"
    write_deltalake(str(tmp_path / "t_quarantine"), pa.table({"id": [1]}))
    assert found(start) == []
    assert damage.mend is not None
    damage.mend()
    assert found(replace(start_of(tmp_path), quarantine=tmp_path / "away")) == []


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"quarantined": 0, "files": 0}, FlowState()),
        ({"quarantined": 1}, FlowState(epoch=1)),
        ({"quarantined": 1, "flow": "second"}, FlowState()),
        ({"quarantined": 1, "pipeline": "other"}, FlowState()),
        ({"quarantined": 1}, FlowState(sink_version=0)),
        ({"quarantined": 1}, FlowState(sink_id="another table")),
    ],
)
def test_what_is_not_missed(tmp_path: Path, counts: dict[str, Any], state: FlowState):
    """Batches that kept nothing out, other flows and epochs, and what was settled by the last run that ended."""
    commit(tmp_path / "t", **counts)
    assert found(start_of(tmp_path, state=state)) == []


def test_files_count(tmp_path: Path):
    """A file that could not be read is a row of the quarantine, too."""
    commit(tmp_path / "t", quarantined=0, files=1)
    assert found(start_of(tmp_path, state=FlowState())) == ["QUARANTINE_GONE"]


@pytest.mark.parametrize(("has", "hole"), [(True, True), (True, False), (False, True)])
def test_a_hole_in_its_log(tmp_path: Path, has: bool, hole: bool):
    """It is named, where the flow has a quarantine; a folder of that name that is none of its own is not looked at."""
    commit(tmp_path / "t")
    for number in range(3):
        write_deltalake(str(tmp_path / "t_quarantine"), pa.table({"id": [number]}), mode="append")
    if hole:
        (tmp_path / "t_quarantine" / "_delta_log" / f"{1:020d}.json").unlink()
    start = start_of(tmp_path, state=FlowState(has_quarantine=has))
    damages = list(quarantine_log_is_damaged(start))
    assert [damage.blocks for damage in damages] == ([True] if has and hole else [])
    assert list(quarantine_log_is_damaged(replace(start, quarantine=None))) == []


@pytest.mark.parametrize(
    ("file", "cut", "deep", "missed"),
    [(1, False, False, True), (1, True, False, True), (0, False, False, False), (0, False, True, True), (None, False, True, False)],
    ids=["the newest is gone", "the newest is cut", "an older one", "an older one, by verify", "all is there"],
)  # fmt: skip
def test_files_of_it_are_gone(tmp_path: Path, file: int | None, cut: bool, deep: bool, missed: bool):
    """Nothing reads a quarantine before somebody replays it: a start looks at the newest files as it does for the table."""
    commit(tmp_path / "t")
    files = []
    for number in range(2):
        write_deltalake(str(tmp_path / "t_quarantine"), pa.table({"id": [number]}), mode="append")
        files += sorted(set((tmp_path / "t_quarantine").glob("*.parquet")) - set(files))
    if file is not None:
        files[file].write_bytes(files[file].read_bytes()[:20]) if cut else files[file].unlink()
    start = replace(start_of(tmp_path, state=FlowState(has_quarantine=True)), deep=deep)
    damages = list(quarantine_files_are_gone(start))
    assert [(damage.condition, damage.blocks) for damage in damages] == (
        [("TABLE_FILES_GONE", True)] if missed else []
    )
    assert quarantine_files_are_gone in CHECKS
    assert list(quarantine_files_are_gone(replace(start, state=FlowState()))) == []
