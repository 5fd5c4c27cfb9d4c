"""A flow under diagnosis: what shows that somebody has been at its checkpoint, and what can not be seen of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline, write_checkpoint

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.delta_log.table_history import FlowCommit
from headwater.doctor import flow_case as module
from headwater.doctor.flow_case import FlowCase, _seen
from headwater.doctor.flow_cases import flow_cases
from headwater.storage.walking import remove_tree

CHANGES: dict[str, Callable[[FlowCheckpoint], object]] = {
    "a batch was planned": lambda one: (one.epoch_folder(0) / "offsets" / "9").write_text("v1"),
    "a batch was marked": lambda one: (one.epoch_folder(0) / "commits" / "9").write_text("v1"),
    "a log is gone": lambda one: shutil.rmtree(str(one.epoch_folder(0) / "commits")),
    "an epoch was opened": lambda one: write_checkpoint(one.epoch_folder(1), 0, [None]),
    "the state is another": lambda one: one.update_state(completed=False, epoch=3),
    "the state is gone": lambda one: one.state_file.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_shows_that_somebody_was_at_a_checkpoint(done: Pipeline, change: str):
    """Each of these, in either log; a look by itself shows nothing."""
    checkpoint = done.checkpoint("silver")
    before = _seen(checkpoint)
    assert _seen(checkpoint) == before
    assert before[0] is not None
    assert [Path(str(log)).name for log, _ in before[1]] == ["offsets", "commits"]  # type: ignore[attr-defined]
    CHANGES[change](checkpoint)
    assert _seen(checkpoint) != before


@pytest.mark.parametrize(
    ("epochs", "lost", "live"), [((0, 3), True, 3), ((0, 3), False, 0), ((0,), True, 0), ((), True, 0)]
)
def test_the_epoch_of_a_flow_whose_state_is_lost(
    done: Pipeline, monkeypatch: pytest.MonkeyPatch, epochs: tuple[int, ...], lost: bool, live: int
):
    """The newest that the table has rows of; a state that is there is believed."""
    commits = [FlowCommit(version, epoch, ("q", version), 1) for version, epoch in enumerate(epochs)]
    monkeypatch.setattr(module, "flow_commits", lambda *_: commits)
    if lost:
        done.checkpoint("silver").state_file.unlink()
    case = FlowCase(done.project, done.manifest, done.flow("silver"))
    assert case.epoch == live


def test_the_last_batch_that_the_table_has(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """Of the live epoch alone; a commit of no batch (a replay, a backfill) counts for none."""
    numbers: list[tuple[int, int | None]] = [(0, 7), (0, 8), (0, None), (1, 30)]
    commits = [
        FlowCommit(version, epoch, None if batch is None else ("q", batch), 1)
        for version, (epoch, batch) in enumerate(numbers)
    ]
    monkeypatch.setattr(module, "flow_commits", lambda *_: commits)
    case = FlowCase(done.project, done.manifest, done.flow("silver"))
    assert (case.epoch, case.written) == (0, 8)


def test_a_table_that_may_not_be_read(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """It is a finding of its flow, and the others are looked at."""
    start = module.flow_start

    def denied(project: Any, manifest: Any, flow: Any, **more: Any) -> Any:
        if flow.name == "bronze":
            raise PermissionError(13, "Permission denied", str(done.table("bronze")))
        return start(project, manifest, flow, **more)

    monkeypatch.setattr(module, "flow_start", denied)
    cases = {case.flow.name: case for case in flow_cases(done.project)}
    (damage,) = cases["bronze"].damages
    assert (damage.condition, damage.blocks, damage.repairs) == ("STORAGE_NOT_READABLE", True, ())
    assert "STORAGE_NOT_READABLE" not in {damage.condition for damage in cases["silver"].damages}


def epoch(done: Pipeline) -> int:
    """The epoch that ``silver`` is taken to be in."""
    return FlowCase(done.project, done.manifest, done.flow("silver")).epoch


def test_the_newest_epoch_that_is_recorded(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """With all of a flow's state gone, the event log says which epoch was its last, where its target does not; else ``flow.json`` does."""
    recorded = {("silver", 2): 0, ("silver", 3): 1, ("bronze", 9): 0}
    monkeypatch.setattr(module, "last_batches", lambda _: recorded)
    assert epoch(done) == 0
    remove_tree(done.checkpoint("silver").folder)
    assert epoch(done) == 3
    recorded.clear()
    assert epoch(done) == 0
