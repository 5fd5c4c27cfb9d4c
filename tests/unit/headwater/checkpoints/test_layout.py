"""Where checkpoints lie, and what outlives an update beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.files.atomic_files import write_atomically
from headwater.graph.pipeline_project import open_project


@pytest.mark.parametrize(
    ("table", "flow"),
    [
        ("user_events", "user_events"),
        ("silver.enriched_events", "enriched_events"),
        ("orders", "late_orders"),
    ],
)
def test_the_path_says_whose_it_is(tmp_path: Path, table: str, flow: str):
    """``<storage>/pipelines/<pipeline_id>/checkpoints/<table>/<flow>/<epoch>``: no two flows share one, by whatever name."""
    (tmp_path / "pipeline.yml").write_text("name: Shop of 2026\nid: shop\n")
    project = open_project(tmp_path, storage=tmp_path / "storage", environment={})
    checkpoint = flow_checkpoint(project.state_folder, table, flow)
    assert checkpoint.live_folder() == tmp_path / f"storage/pipelines/shop/checkpoints/{table}/{flow}/0"
    checkpoint.write_state(FlowState(epoch=3))
    assert checkpoint.live_folder().name == "3"


def test_an_epoch_leaves_behind_what_was_the_last_ones(tmp_path: Path):
    """Ids, versions and settings belong to an epoch; what another version of Headwater keeps stays."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.write_state(FlowState(sink_id="a", query_id="b", sink_version=4, others={"later": 1}))
    state = checkpoint.read_state()
    assert state is not None
    checkpoint.write_state(state.opened(1))
    assert checkpoint.read_state() == FlowState(epoch=1, others={"later": 1})


def test_the_newest_epoch_stands_in_for_a_lost_state(tmp_path: Path):
    """Where the file is gone and epochs are not, the newest is live; without any there is no state."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    assert checkpoint.surviving_state() is None
    for epoch in (0, 2, 10):
        checkpoint.epoch_folder(epoch).mkdir(parents=True)
    assert checkpoint.surviving_state() == FlowState(epoch=10)
    checkpoint.state_file.write_text("[]")
    with pytest.raises(FlowStateDamaged, match="no object"):
        checkpoint.surviving_state()


def test_a_failed_write_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing half-written takes its place, and nothing is left beside it."""
    file = tmp_path / "flow.json"
    write_atomically(file, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(file, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["flow.json"]
    assert file.read_text() == "old"


@pytest.mark.parametrize(
    "text",
    ["[1]", '{"epoch": "zero"}', '{"epoch": -1}', '{"sources": 5}', '{"sources": ["x"]}', '{"source_schemas": null}', '{"refresh": 7}'],
)  # fmt: skip
def test_a_state_of_other_types(tmp_path: Path, text: str):
    """A file that is JSON and no state is damage with a remedy, not an error in whatever looks at it first."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.folder.mkdir(parents=True)
    checkpoint.state_file.write_text(text)
    with pytest.raises(FlowStateDamaged) as raised:
        checkpoint.read_state()
    assert "aside" in raised.value.remedy


def test_states_of_all_versions(tmp_path: Path):
    """What an earlier version did not have, and what a later one has more, is no damage."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.folder.mkdir(parents=True)
    for text in ("{}", '{"epoch": 2, "sources": null}', '{"epoch": 2, "of_a_later_version": [1]}'):
        checkpoint.state_file.write_text(text)
        assert checkpoint.read_state() is not None


@pytest.mark.parametrize(
    ("state", "marked", "written"),
    [
        (None, [], False),
        ({}, [], False),
        ({"sink_id": "t"}, [], True),
        ({}, [0], True),
        ({"first_batch": 2}, [0, 1], False),
        ({"first_batch": 2}, [0, 1, 2], True),
        (None, [0], True),
    ],
)
def test_what_has_written(tmp_path, state, marked, written):
    """An epoch whose table is known, or that has a batch of its own: those that a repair made are none."""
    checkpoint = flow_checkpoint(tmp_path, "orders", "orders")
    if state is not None:
        checkpoint.update_state(**state)
    for batch in marked:
        commits = checkpoint.epoch_folder(0) / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        (commits / str(batch)).write_text("v1")
    assert checkpoint.has_written() is written
